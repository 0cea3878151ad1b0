-- Row shapes of the log's functions: views without rows, so that callers and code generators know every column's type.

create or replace view rewind.appended as
select
  '00000000-0000-0000-0000-000000000000'::uuid as event_id,
  null::int as wal_partition,
  null::bigint as wal_offset,
  null::bigint as stream_version,
  null::bigint as hlc,
  false as was_new
where false;

comment on view rewind.appended is
  'Shape: where an appended event stands, nowhere if it is in quarantine; was_new is false for one that the stream already had.';

create or replace view rewind.records as
select
  w.tree_id,
  w.wal_partition,
  w.wal_offset,
  w.hlc,
  w.stream_id,
  w.stream_version,
  w.event_id,
  w.kind,
  w.mode,
  w.event_type,
  w.payload,
  w.metadata,
  w.delta,
  w.end_key,
  w.origin_cluster,
  w.origin_hlc,
  w.appended_at,
  ''::text as tree_name,
  ''::text as tenant_id,
  ''::text as stream_key
from rewind.wal w
where false;

comment on view rewind.records is 'Shape: a record with the names of its tree, tenant and stream.';

create or replace view rewind.tree_generation as
select 0::int as generation, 0::int as first_partition, 0::int as partitions
where false;
comment on view rewind.tree_generation is 'Shape: a generation of a tree, and the partitions that it has.';
