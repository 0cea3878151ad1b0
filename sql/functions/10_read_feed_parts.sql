-- Parts of partitions for a reader that merges them itself; parallel arrays. Of each part: the records that match, in order, until they
-- take p_max_bytes, and its last record, which says how far it was read if it doesn't match.
-- Errors: RW010 (a part begins in what was trimmed since the reader began).
create or replace function rewind._read_feed_parts(
  p_tree text, p_partitions int[], p_from bigint[], p_to bigint[], p_max_bytes bigint, p_filter rewind.feed_filter
) returns setof rewind.feed_entries
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_wanted jsonb;
  v_available jsonb;
begin
  select jsonb_object_agg(r.wal_partition, r.from_offset), jsonb_object_agg(r.wal_partition, p.floor_offset) into v_wanted, v_available
  from unnest(p_partitions, p_from) r(wal_partition, from_offset)
  join rewind.tree_partitions p on p.tree_id = v_tree.tree_id and p.wal_partition = r.wal_partition and p.floor_offset > r.from_offset;
  if v_wanted is not null then
    perform rewind._refuse_cursor('RW010', p_tree, 'is below what was trimmed away',
      jsonb_build_object('offsets', v_wanted), jsonb_build_object('offsets', v_available));
  end if;

  return query
  select w.wal_partition, w.wal_offset, w.hlc, w.stream_id, w.stream_version, w.event_id, w.kind, w.mode, w.event_type, w.payload, w.metadata,
    w.delta, w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at, w.matches
  from unnest(p_partitions, p_from, p_to) r(wal_partition, from_offset, to_offset)
  cross join (select (p_filter).* offset 0) f
  cross join lateral (
    select m.*, sum(m.bytes) over (order by m.wal_offset rows unbounded preceding) - m.bytes as bytes_before
    from (
      select w.*, case when w.matches then rewind._feed_bytes(w.payload, w.metadata, w.delta) else 0 end as bytes
      from (
        select w.*,
          coalesce(
            rewind._feed_matches(w.kind, w.event_type, w.origin_cluster, f.kinds, f.event_types, f.cluster_id, f.local_origin, f.foreign_origin)
            and (f.key_prefix is null or starts_with((select s.stream_key from rewind.streams s where s.stream_id = w.stream_id), f.key_prefix)),
            false) as matches
        from rewind.wal w
        where w.tree_id = v_tree.tree_id and w.wal_partition = r.wal_partition and w.wal_offset >= r.from_offset and w.wal_offset < r.to_offset
        order by w.wal_offset
        offset 0
      ) w
    ) m
  ) w
  where w.bytes_before < p_max_bytes and (w.matches or w.wal_offset = r.to_offset - 1);
end
$function$;

comment on function rewind._read_feed_parts(text, int[], bigint[], bigint[], bigint, rewind.feed_filter) is
  'Parts of partitions of the feed, for a reader that merges them itself.';
