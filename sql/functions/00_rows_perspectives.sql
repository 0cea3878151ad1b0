-- Row shapes of the live path: views without rows, which give results named and typed columns.

create or replace view rewind.batch_result as
select
  0::bigint as records_read,
  0::bigint as events_folded,
  0::bigint as streams,
  0::bigint as late,
  0::bigint as failed,
  0::bigint as next_offset,
  0::bigint as head_offset
where false;
comment on view rewind.batch_result is 'What a batch of the live path did; streams, late and failed count streams.';

create or replace view rewind.fold_counts as
select 0::bigint as streams, 0::bigint as events, 0::bigint as failed, 0::bigint as repaired, 0::bigint as restored, jsonb '[]' as narrated
where false;
comment on view rewind.fold_counts is
  'What a step of a batch did: streams written, events folded, streams failed, late streams repaired, of those restored from snapshots; narrated: repairs that it put on record.';

create or replace view rewind.applied_batch as
select b.*, 0::bigint as repaired, 0::bigint as restored, jsonb '[]' as narrated from rewind.batch_result b;
comment on view rewind.applied_batch is
  'What a batch did, with the late streams that it repaired, those of them that it restored from snapshots, and the repairs that it put on record.';

create or replace view rewind.folds as
select
  null::uuid[] as stream_ids,
  null::jsonb[] as models,
  null::uuid[] as first_event_ids,
  null::uuid[] as last_event_ids,
  null::bigint[] as applied_versions,
  null::bigint[] as events_applied,
  null::uuid[] as trigger_event_ids,
  null::uuid[] as restore_event_ids,
  null::bigint[] as events_folded,
  null::uuid[] as failed_stream_ids,
  null::text[] as errors,
  null::uuid[] as error_event_ids,
  null::uuid[] as failed_trigger_event_ids,
  null::uuid[] as snapshot_stream_ids,
  null::uuid[] as snapshot_event_ids,
  null::jsonb[] as snapshot_models,
  null::bigint[] as snapshot_applied_versions,
  null::bigint[] as snapshot_events_applied
where false;
comment on view rewind.folds is
  'What a batch folded, in parallel arrays: streams that folded (trigger not null: repaired late ones), streams that failed, snapshots.';

create or replace view rewind.claimed_range as
select 0::bigint as from_offset, 0::bigint as to_offset, 0::bigint as head_offset, 0::bigint as cut_offset
where false;
comment on view rewind.claimed_range is
  'Offsets of a claimed batch, from inclusive, to exclusive, the partition''s next append position, and up to where it is built.';

create or replace view rewind.build_plan as
select 0::bigint as to_offset, null::uuid[] as stream_ids, null::uuid[] as large_stream_ids
where false;
comment on view rewind.build_plan is 'What a step of building a partition folds, what is too large for it, and up to where that is all.';

create or replace view rewind.unread_partition as
select 0::int as generation_id, 0::int as wal_partition, 0::bigint as next_offset, 0::bigint as head_offset
where false;
comment on view rewind.unread_partition is 'A partition that a generation has not read to its end.';

create or replace view rewind.batch_event as
select
  0::bigint as from_offset,
  0::bigint as to_offset,
  0::bigint as head_offset,
  null::uuid as stream_id,
  null::text as stream_key,
  null::text as tenant_id,
  null::jsonb as model,
  null::uuid as trigger_event_id,
  null::uuid as restore_event_id,
  null::bigint as events_before,
  null::bigint as stream_version,
  null::uuid as event_id,
  null::text as event_type,
  null::jsonb as payload,
  null::jsonb as metadata,
  null::boolean as skipped,
  null::boolean as snapshot_due
where false;
comment on view rewind.batch_event is
  'An event of a batch to fold in Go, with what its stream starts from; stream_id null: a batch in which nothing is to be folded.';
