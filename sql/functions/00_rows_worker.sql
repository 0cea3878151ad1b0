-- Row shapes of the worker's functions: views without rows, which give results named and typed columns.

create or replace view rewind.work as
select
  0::int as generation_id,
  ''::text as perspective_name,
  null::int as wal_partition,
  null::uuid as stream_id,
  null::text as stream_key,
  null::text as held_by,
  null::bigint as held_token,
  null::bigint as next_offset,
  false::boolean as is_build,
  null::bigint as rebuild_id
where false;
comment on view rewind.work is
  'Something to do: a partition to read from next_offset on, or (stream_id not null) a repair that is due; held_by: by whom its stream is locked; or (rebuild_id not null) a rebuild to end.';

create or replace view rewind.debts as
select 0::bigint as owed, 0::bigint as failed, 0::bigint as parked
where false;
comment on view rewind.debts is 'How many streams owe something and will be repaired, failed and will be tried again, failed and will not.';

create or replace view rewind.flagged_scan as
select 0::bigint as streams, 0::bigint as perspectives, 0::bigint as left_alone, null::timestamptz as scanned_at
where false;
comment on view rewind.flagged_scan is 'Flagged streams, of how many perspectives, and how many of the streams a worker leaves alone.';

create or replace view rewind.begun_attempt as
select 0::int as record_limit, false::boolean as is_suspect, 0::int as deaths
where false;
comment on view rewind.begun_attempt is
  'How many records a batch in Go may have; is_suspect: a fold among the next ones may end its process; deaths: how often the next record alone did.';
