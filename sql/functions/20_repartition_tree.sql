-- Moves a tree on to p_partitions new partitions. Streams, versions and idempotency go on as they were; readers of the feed, with cursors of
-- whatever generation, finish the old partitions and go on in the new ones, and so do perspectives. Appends wait for less than a second,
-- up to the commit: commit at once. While a transaction that appended stays open it is waited for, and appends to other partitions go on.
-- Options: timeout (30s), how long it waits for such transactions.
-- Locks: tree (advisory), its perspectives against being dropped, all its append locks.
-- Errors: RW005, RW020, 22023, 40001 (in a transaction that has appended), 55P03.
create or replace function rewind.repartition_tree(p_tree text, p_partitions int, p_options jsonb default '{}') returns setof rewind.trees
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_timeout interval;
  v_tree rewind.trees;
begin
  perform rewind._check_options(p_options, array['timeout']);
  v_timeout := rewind._duration_option(p_options, 'timeout', '30s');
  perform rewind._check_partitions(p_partitions);
  v_tree := rewind._lock_tree(p_tree);
  if v_tree.partitions = p_partitions then
    raise exception 'tree "%" has % partitions already', p_tree, p_partitions using errcode = '22023';
  end if;
  perform from rewind.perspectives p where p.tree_id = v_tree.tree_id order by p.perspective_name for share;
  perform rewind._pause_appends(array[v_tree.tree_id], v_timeout);
  v_tree := rewind._move_tree(v_tree, p_partitions);
  return next v_tree;
end
$function$;

comment on function rewind.repartition_tree(text, int, jsonb) is 'Moves a tree on to another number of partitions, and returns its row.';
