-- Moves a tree on to the log of another tree, p_to, that was made for it and has nothing in it yet: the tree goes on with the partitions and
-- options of p_to, which is no tree of its own any more. Streams belong to the name of their tree, so they stay those of p_tree. Otherwise as
-- repartition_tree. Options: timeout (30s).
-- Locks: both trees (advisory), perspectives of the first against being dropped, all append locks of both.
-- Errors: RW005, RW019 (a perspective reads p_to), RW020, 22023 (also: p_to is not empty), 40001 (in a transaction that has appended), 55P03.
create or replace function rewind.repoint_tree(p_tree text, p_to text, p_options jsonb default '{}') returns setof rewind.trees
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $function$
declare
  v_timeout interval;
  v_tree rewind.trees;
  v_to rewind.trees;
  v_perspective text;
  v_content text;
begin
  perform rewind._check_options(p_options, array['timeout']);
  v_timeout := rewind._duration_option(p_options, 'timeout', '30s');
  if p_tree = p_to then
    raise exception 'tree "%" can''t be repointed to itself', p_tree using
      errcode = '22023', hint = 'rewind.repartition_tree changes the number of its partitions';
  end if;
  if p_tree collate "C" < p_to then
    v_tree := rewind._lock_tree(p_tree);
    v_to := rewind._lock_tree(p_to);
  else
    v_to := rewind._lock_tree(p_to);
    v_tree := rewind._lock_tree(p_tree);
  end if;
  select min(p.perspective_name) into v_perspective from rewind.perspectives p where p.tree_id = v_to.tree_id;
  if v_perspective is not null then
    raise exception 'tree "%" is read by perspective "%"', p_to, v_perspective using
      errcode = 'RW019',
      detail = jsonb_build_object('tree', p_to, 'perspective', v_perspective)::text,
      hint = 'drop the perspective first, or repoint to a new tree';
  end if;
  perform from rewind.perspectives p where p.tree_id = v_tree.tree_id order by p.perspective_name for share;
  perform rewind._pause_appends(array[v_tree.tree_id, v_to.tree_id], v_timeout);

  v_content := case
    when exists (select from rewind.wal w where w.tree_id = v_to.tree_id) then 'records'
    when exists (select from rewind.quarantined_events q where q.tree_id = v_to.tree_id) then 'events in quarantine'
    when exists (select from rewind.feed_consumers c where c.tree_id = v_to.tree_id) then 'feed consumers'
  end;
  if v_content is not null then
    raise exception 'tree "%" has %', p_to, v_content using
      errcode = '22023',
      detail = jsonb_build_object('tree', p_to, 'has', v_content)::text,
      hint = 'streams belong to the name of their tree; repoint to a new tree, and append to the old name what is to be in it';
  end if;
  delete from rewind.tree_partitions p where p.tree_id = v_to.tree_id;
  delete from rewind.trees t where t.tree_id = v_to.tree_id;
  v_tree := rewind._move_tree(v_tree, v_to.partitions);
  update rewind.trees t set options = v_to.options where t.tree_id = v_tree.tree_id returning * into v_tree;
  return next v_tree;
end
$function$;

comment on function rewind.repoint_tree(text, text, jsonb) is 'Moves a tree on to the log of another, empty one, and returns its row.';
