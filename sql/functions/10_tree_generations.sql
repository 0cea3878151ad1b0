-- The generations of a tree, for finding out in which partitions a stream may have records (_stream_partition).
create or replace function rewind._tree_generations(p_tree_id int) returns setof rewind.tree_generation
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select p.generation, min(p.wal_partition), count(*)::int
  from rewind.tree_partitions p
  where p.tree_id = p_tree_id
  group by p.generation;
$function$;

comment on function rewind._tree_generations(int) is 'The generations of a tree.';
