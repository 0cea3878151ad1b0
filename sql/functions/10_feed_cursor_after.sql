-- The cursor right after a place in the order of the feed, (p_hlc, p_partition), which lies between the ranges' beginnings and p_to.
create or replace function rewind._feed_cursor_after(p_tree rewind.trees, p_ranges rewind.feed_range[], p_to bigint[], p_hlc bigint, p_partition int)
  returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_nestloop = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  return (
    select rewind._feed_cursor(p_tree.tree_name, r.generation, array_agg(n.wal_partition), array_agg(n.wal_offset), array_agg(
      case when n.wal_offset = r.from_offset then r.from_hlc else (
        select w.hlc from rewind.wal w
        where w.tree_id = p_tree.tree_id and w.wal_partition = n.wal_partition and w.wal_offset = n.wal_offset - 1
      ) end))
    from rewind._feed_positions(p_tree.tree_id, array(select r.wal_partition from unnest(p_ranges) r),
      array(select r.from_offset from unnest(p_ranges) r), p_to, p_hlc, p_partition) n
    join unnest(p_ranges) r on r.wal_partition = n.wal_partition
    where r.generation = (select r.generation from unnest(p_ranges) r where r.wal_partition = p_partition)
    group by r.generation
  );
end
$function$;

comment on function rewind._feed_cursor_after(rewind.trees, rewind.feed_range[], bigint[], bigint, int) is
  'The feed cursor right after a record.';
