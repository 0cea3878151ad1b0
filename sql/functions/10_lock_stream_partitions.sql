-- Keeps the live path off streams until the transaction ends: locks a generation's partitions in which it may meet them, in ascending order.
-- There is one for each generation of the tree.
create or replace function rewind._lock_stream_partitions(p_generation rewind.perspective_generations, p_stream_ids uuid[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform from rewind.perspective_partitions p
  where p.generation_id = p_generation.generation_id and p.wal_partition in (
    select rewind._stream_partition(s.stream_id, g.first_partition, g.partitions)
    from unnest(p_stream_ids) s(stream_id)
    cross join rewind._tree_generations(p_generation.tree_id) g
  )
  order by p.wal_partition
  for update;
end
$function$;

comment on function rewind._lock_stream_partitions(rewind.perspective_generations, uuid[]) is 'Keeps the live path off streams.';
