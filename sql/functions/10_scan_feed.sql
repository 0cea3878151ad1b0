-- Records that match, in parts of partitions (parallel arrays). Written to be inlined; the caller sets the planner.
create or replace function rewind._scan_feed(p_tree_id int, p_partitions int[], p_from bigint[], p_to bigint[], p_filter rewind.feed_filter)
  returns setof rewind.wal
  language sql stable parallel safe security invoker
begin atomic
  select w.*
  from unnest(p_partitions, p_from, p_to) r(wal_partition, from_offset, to_offset)
  cross join (select (p_filter).* offset 0) f
  cross join lateral (
    select * from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = r.wal_partition and w.wal_offset >= r.from_offset and w.wal_offset < r.to_offset
      and rewind._feed_matches(w.kind, w.event_type, w.origin_cluster, f.kinds, f.event_types, f.cluster_id, f.local_origin, f.foreign_origin)
      and (f.key_prefix is null or starts_with((select s.stream_key from rewind.streams s where s.stream_id = w.stream_id), f.key_prefix))
    offset 0
  ) w;
end;

comment on function rewind._scan_feed(int, int[], bigint[], bigint[], rewind.feed_filter) is 'Matching records in parts of partitions.';
