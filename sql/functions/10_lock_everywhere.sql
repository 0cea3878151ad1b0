-- Keeps whoever folds off a stream in all generations of a perspective until the transaction ends: takes its lock rows, then the partitions in
-- which the live path may meet it.
create or replace function rewind._lock_everywhere(p_perspective text, p_stream_id uuid) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._take_stream_locks(p_perspective, array[p_stream_id]);
  perform from rewind.perspective_partitions t
  join rewind.perspective_generations g on g.generation_id = t.generation_id
  where g.perspective_name = p_perspective and t.wal_partition in (
    select rewind._stream_partition(p_stream_id, n.first_partition, n.partitions) from rewind._tree_generations(g.tree_id) n
  )
  order by t.generation_id, t.wal_partition
  for update of t;
end
$function$;

comment on function rewind._lock_everywhere(text, uuid) is 'Keeps whoever folds off a stream in all generations of a perspective.';
