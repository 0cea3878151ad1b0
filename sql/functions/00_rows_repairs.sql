-- Row shapes of repairs: views without rows, which give results named and typed columns.

create or replace view rewind.late_stream as
select
  null::uuid as stream_id,
  null::uuid as trigger_event_id,
  0::bigint as to_version,
  0::bigint as events_applied,
  0::bigint as events_new,
  false::boolean as owing
where false;
comment on view rewind.late_stream is
  'A stream that is late in a batch: its least late event id, last version and number of new events in it, and whether its cursor owed before.';

create or replace view rewind.late_repair as
select
  null::uuid as stream_id,
  null::uuid as trigger_event_id,
  0::bigint as to_version,
  null::uuid as snapshot_event_id,
  null::jsonb as model,
  0::bigint as events_applied,
  0::bigint as depth
where false;
comment on view rewind.late_repair is 'From where a late stream would be replayed: restore point (null: beginning), model there, events to fold.';

create or replace view rewind.claimed_rewind as
select
  0::int as generation_id,
  ''::text as perspective_name,
  null::uuid as stream_id,
  ''::text as stream_key,
  0::bigint as token,
  null::uuid as trigger_event_id,
  0::bigint as applied_version,
  null::uuid as last_event_id,
  0::bigint as events_behind
where false;
comment on view rewind.claimed_rewind is 'A rewind that was claimed, with the fencing token of its stream lock.';

create or replace view rewind.replay_start as
select
  null::uuid as trigger_event_id,
  0::bigint as head_version,
  ''::text as replay_source,
  null::uuid as restore_event_id,
  null::uuid as snapshot_event_id,
  null::jsonb as model,
  0::bigint as events_applied,
  0::bigint as events_to_fold
where false;
comment on view rewind.replay_start is 'Where a replay starts (restore_event_id null: from the beginning) and what it has to fold, as seen at its start.';

create or replace view rewind.replay_page as
select
  null::jsonb as model,
  null::uuid as last_event_id,
  0::bigint as events_folded,
  null::text as error,
  null::uuid as error_event_id
where false;
comment on view rewind.replay_page is 'The model after a page of a replay; error: the fold raised at error_event_id.';

create or replace view rewind.due_rewind as
select
  0::int as generation_id,
  ''::text as perspective_name,
  null::uuid as stream_id,
  null::uuid as trigger_event_id,
  0::bigint as applied_version,
  null::uuid as last_event_id,
  null::timestamptz as owed_since,
  0::bigint as events_applied,
  null::double precision as defer_ratio
where false;
comment on view rewind.due_rewind is
  'A cursor whose repair or retry is due; defer_ratio not null: if at least this share of the events that it would fold is owed.';

create or replace view rewind.owed_records as
select
  0::bigint as records,
  null::uuid as least_event_id,
  null::uuid as greatest_event_id,
  0::bigint as last_version,
  null::bigint[] as first_place
where false;
comment on view rewind.owed_records is
  'Candidate records of a stream within a range of versions; first_place: partition and offset of the first one.';

create or replace view rewind.repair_state as
select
  0::int as generation_id,
  null::uuid as stream_id,
  0::bigint as token,
  ''::text as phase,
  null::bigint as to_version,
  false::boolean as from_beginning,
  null::bigint as head_version,
  null::uuid as restore_event_id,
  null::uuid as last_event_id,
  null::jsonb as model,
  0::bigint as events_applied,
  0::bigint as events_to_fold,
  0::bigint as events_folded,
  null::jsonb as snapshots,
  0::int as passes,
  null::text as error,
  null::uuid as error_event_id
where false;
comment on view rewind.repair_state is 'Where a repair without a worker stands between two of its transactions.';

create or replace view rewind.replay_event as
select
  null::uuid as event_id,
  null::text as event_type,
  null::jsonb as payload,
  null::jsonb as metadata,
  false::boolean as skipped
where false;
comment on view rewind.replay_event is 'An event of a replay in Go, in chronology; skipped ones count but are not folded.';
