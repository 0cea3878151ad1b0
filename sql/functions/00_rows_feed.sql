-- Row shapes of the feed's functions: views without rows, which give results named and typed columns.

create or replace view rewind.feed_records as
select w.*, null::text as tree_name, null::text as tenant_id, null::text as stream_key, null::jsonb as next_cursor
from rewind.wal w
where false;
comment on view rewind.feed_records is 'Shape: a record of the feed; next_cursor resumes right after it and stands in the last row of a page.';

create or replace view rewind.feed_entries as
select
  w.wal_partition, w.wal_offset, w.hlc, w.stream_id, w.stream_version, w.event_id, w.kind, w.mode, w.event_type, w.payload, w.metadata, w.delta,
  w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at, false::boolean as matches,
  0::int as deferred_bytes
from rewind.wal w
where false;
comment on view rewind.feed_entries is 'Shape: a record on its way into the merge of the feed; one that does not match only says how far its partition was read.';

create or replace view rewind.feed_contents as
select w.payload, w.metadata, w.delta
from rewind.wal w
where false;
comment on view rewind.feed_contents is 'Shape: what a record of the feed carries.';

create or replace view rewind.stream_names as
select s.stream_id, s.tenant_id, s.stream_key
from rewind.streams s
where false;
comment on view rewind.stream_names is 'Shape: tenant and key of a stream.';

create or replace view rewind.feed_cursor as
select 0::int as generation, null::jsonb as offsets, null::jsonb as after
where false;
comment on view rewind.feed_cursor is 'Shape: a feed cursor that was checked against its tree.';

create or replace view rewind.feed_filter as
select
  null::smallint[] as kinds,
  null::text[] as event_types,
  null::text as key_prefix,
  null::uuid as cluster_id,
  false::boolean as local_origin,
  false::boolean as foreign_origin
where false;
comment on view rewind.feed_filter is
  'Shape: what a reader of the feed asks for (event_types, key_prefix null: all); local are the records that cluster_id authored.';

create or replace view rewind.feed_range as
select
  0::int as generation,
  0::int as wal_partition,
  0::bigint as from_offset,
  0::bigint as until_offset,
  0::bigint as head_offset,
  null::bigint as from_hlc
where false;
comment on view rewind.feed_range is 'Shape: what a reader has before it in a partition; from_hlc is the clock of the record before from_offset.';

create or replace view rewind.feed_position as
select 0::int as wal_partition, 0::bigint as wal_offset
where false;
comment on view rewind.feed_position is 'Shape: an offset in a partition.';

create or replace view rewind.trim_floor as
select
  0::int as wal_partition,
  0::bigint as head_offset,
  0::bigint as wanted_offset,
  null::text as consumer_name,
  null::boolean as is_live,
  0::bigint as needed_offset,
  0::bigint as floor_offset
where false;
comment on view rewind.trim_floor is 'Shape: where the floor of a partition would be, and what a consumer needs of it.';

create or replace view rewind.trim_result as
select 0::bigint as records_deleted, 0::bigint as records_left, null::text[] as held_by, null::text[] as left_behind
where false;
comment on view rewind.trim_result is
  'Shape: what trimming did; records_left are below the floors and not yet looked at; held_by, left_behind name consumers.';
