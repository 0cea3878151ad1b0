-- Parts of partitions for a reader that merges them itself; parallel arrays. Of each part, in order: the records that match, and its last
-- record, which says how far it was read if it doesn't match. What takes more than p_max_bytes, as stored, comes without payload,
-- metadata and delta, and says in deferred_bytes how much that is, uncompressed: _load_feed_records brings it when its turn comes.
-- Written to be inlined, so that rows stream to the reader while others are read. Errors: those of _check_feed_floors.
create or replace function rewind._read_feed_parts(
  p_tree_id int, p_partitions int[], p_from bigint[], p_to bigint[], p_max_bytes int, p_filter rewind.feed_filter
) returns setof rewind.feed_entries
  language sql stable parallel safe security invoker
begin atomic
  select w.wal_partition, w.wal_offset, w.hlc, w.stream_id, w.stream_version, w.event_id, w.kind, w.mode, w.event_type,
    case when w.deferred_bytes = 0 then w.payload end, case when w.deferred_bytes = 0 then w.metadata end,
    case when w.deferred_bytes = 0 then w.delta end,
    w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at, w.matches, w.deferred_bytes
  from unnest(p_partitions, p_from, p_to) r(wal_partition, from_offset, to_offset)
  cross join (select (p_filter).* where rewind._check_feed_floors(p_tree_id, p_partitions, p_from) offset 0) f
  cross join lateral (
    select w.*,
      coalesce(
        rewind._feed_matches(w.kind, w.event_type, w.origin_cluster, f.kinds, f.event_types, f.cluster_id, f.local_origin, f.foreign_origin)
        and (f.key_prefix is null or starts_with((select s.stream_key from rewind.streams s where s.stream_id = w.stream_id), f.key_prefix)),
        false) as matches,
      case when rewind._feed_bytes(w.payload, w.metadata, w.delta) <= p_max_bytes then 0
        else rewind._json_size(w.payload) + rewind._json_size(w.metadata) + coalesce(length(w.delta), 0) end as deferred_bytes
    from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = r.wal_partition and w.wal_offset >= r.from_offset and w.wal_offset < r.to_offset
    order by w.wal_offset
    offset 0
  ) w
  where w.matches or w.wal_offset = r.to_offset - 1;
end;

comment on function rewind._read_feed_parts(int, int[], bigint[], bigint[], int, rewind.feed_filter) is
  'Parts of partitions of the feed, for a reader that merges them itself.';
