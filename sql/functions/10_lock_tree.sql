-- What moving a tree begins with: the tree of a name, locked against trims, other moves, and perspectives and consumers that are created
-- meanwhile. $system doesn't move: it has one partition, the last of all locks. Errors: RW005, RW020, 22023.
create or replace function rewind._lock_tree(p_tree text) returns rewind.trees
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._require_read_committed();
  if p_tree = '$system' then
    raise exception 'tree "$system" has one partition, always' using errcode = '22023';
  end if;
  perform pg_advisory_xact_lock(1381433341, (rewind._find_tree(p_tree)).tree_id);
  return rewind._find_tree(p_tree);
end
$function$;

comment on function rewind._lock_tree(text) is 'Locks a tree that is about to move.';
