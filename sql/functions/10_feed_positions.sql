-- Where partitions stand right after a place in the order of the feed, (p_hlc, p_partition): for each (in parallel arrays) the first offset
-- with p_from <= offset < p_to that comes after it, or p_to. A binary search of all of them at once, since clocks rise with offsets, which
-- have no gaps.
create or replace function rewind._feed_positions(
  p_tree_id int, p_partitions int[], p_from bigint[], p_to bigint[], p_hlc bigint, p_partition int
) returns setof rewind.feed_position
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  return query
  with recursive search (partition, low, high) as (
    select r.wal_partition, r.from_offset, greatest(r.from_offset, r.to_offset)
    from unnest(p_partitions, p_from, p_to) r(wal_partition, from_offset, to_offset)
    union all
    select s.partition,
      case when w.is_after then s.low else w.wal_offset + 1 end,
      case when w.is_after then w.wal_offset else s.high end
    from search s
    cross join lateral (
      select w.wal_offset, w.hlc >= p_hlc + (s.partition <= p_partition)::int as is_after
      from rewind.wal w
      where w.tree_id = p_tree_id and w.wal_partition = s.partition and w.wal_offset = s.low + (s.high - s.low) / 2
      offset 0
    ) w
    where s.low < s.high
  )
  select s.partition, s.low from search s where s.low = s.high;
end
$function$;

comment on function rewind._feed_positions(int, int[], bigint[], bigint[], bigint, int) is
  'Where partitions stand right after a place in the order of the feed.';
