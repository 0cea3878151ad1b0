-- Locks the partitions of all generations of a perspective but one, in order, so that no batch of theirs is under way.
create or replace function rewind._lock_other_generations(p_perspective text, p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform from rewind.perspective_partitions t
  where t.generation_id in (
    select g.generation_id from rewind.perspective_generations g
    where g.perspective_name = p_perspective and g.generation_id <> p_generation_id
  )
  order by t.generation_id, t.wal_partition
  for update;
end
$function$;

comment on function rewind._lock_other_generations(text, int) is 'Locks the partitions of all generations of a perspective but one.';
