-- Row shapes of the feed's functions: views without rows, which give results named and typed columns.

create or replace view rewind.feed_records as
select r.*, null::jsonb as next_cursor
from rewind.records r
where false;
comment on view rewind.feed_records is 'Shape: a record of the feed; next_cursor resumes right after it and stands in the last row of a page.';

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
  null::bigint as from_hlc
where false;
comment on view rewind.feed_range is 'Shape: what a reader has before it in a partition; from_hlc is the clock of the record before from_offset.';

create or replace view rewind.feed_position as
select 0::int as wal_partition, 0::bigint as wal_offset
where false;
comment on view rewind.feed_position is 'Shape: an offset in a partition.';
