-- Partitions that a generation has not read to their ends, by one probe of each one's end.
create or replace function rewind._unread_partitions(p_generation_id int) returns setof rewind.unread_partition
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select t.generation_id, t.wal_partition, t.next_offset, h.head_offset
  from rewind.perspective_generations g
  join rewind.perspective_partitions t on t.generation_id = g.generation_id
  cross join lateral (
    select w.wal_offset + 1 as head_offset
    from rewind.wal w
    where w.tree_id = g.tree_id and w.wal_partition = t.wal_partition
    order by w.wal_offset desc
    limit 1
  ) h
  where g.generation_id = p_generation_id and t.next_offset < h.head_offset
  order by t.wal_partition;
$function$;

comment on function rewind._unread_partitions(int) is 'Partitions that a generation has not read to their ends.';
