-- What _read_feed_parts deferred, in the order asked for; parallel arrays. Errors: RW010 (trimmed since).
create or replace function rewind._load_feed_records(p_tree_id int, p_partitions int[], p_offsets bigint[])
  returns setof rewind.feed_contents
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  perform rewind._check_feed_floors(p_tree_id, p_partitions, p_offsets);
  return query
  select w.payload, w.metadata, w.delta
  from unnest(p_partitions, p_offsets) with ordinality r(wal_partition, wal_offset, nth)
  cross join lateral (
    select w.payload, w.metadata, w.delta
    from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = r.wal_partition and w.wal_offset = r.wal_offset
    offset 0
  ) w
  order by r.nth;
end
$function$;

comment on function rewind._load_feed_records(int, int[], bigint[]) is 'Payloads, metadata and deltas of records of the feed.';
