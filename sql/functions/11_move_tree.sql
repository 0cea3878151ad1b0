-- Gives a tree, locked by _lock_tree, a new generation of p_partitions: what is appended from the commit on goes there. The partitions of
-- before get their ends, and readers go on in the new ones when they have come to these. The caller holds the append locks.
-- Nothing of streams is written: where a stream is follows from its id (_stream_partition).
create or replace function rewind._move_tree(p_tree rewind.trees, p_partitions int) returns rewind.trees
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees;
  v_last_hlc bigint;
begin
  with ended as (
    update rewind.tree_partitions p
    set end_offset = h.next_offset
    from rewind.partitions h
    where h.tree_id = p.tree_id and h.wal_partition = p.wal_partition and p.tree_id = p_tree.tree_id and p.end_offset is null
    returning greatest(h.last_hlc, p.base_hlc) as last_hlc
  )
  select max(e.last_hlc) into v_last_hlc from ended e;

  update rewind.trees t
  set generation = t.generation + 1, first_partition = t.first_partition + t.partitions, partitions = p_partitions
  where t.tree_id = p_tree.tree_id
  returning * into v_tree;
  insert into rewind.tree_partitions (tree_id, wal_partition, generation, base_hlc)
  select v_tree.tree_id, v_tree.first_partition + n, v_tree.generation, v_last_hlc
  from generate_series(0, p_partitions - 1) n;
  insert into rewind.perspective_partitions (generation_id, wal_partition)
  select g.generation_id, v_tree.first_partition + n
  from rewind.perspective_generations g
  cross join generate_series(0, p_partitions - 1) n
  where g.tree_id = v_tree.tree_id;
  return v_tree;
end
$function$;

comment on function rewind._move_tree(rewind.trees, int) is 'Gives a tree a new generation of partitions.';
