-- The row of a tree. Errors: RW005.
create or replace function rewind._find_tree(p_tree text) returns rewind.trees
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees;
begin
  select * into v_tree from rewind.trees t where t.tree_name = p_tree;
  if not found then
    raise exception 'unknown tree "%"', p_tree using
      errcode = 'RW005',
      detail = jsonb_build_object('tree', p_tree)::text,
      hint = 'create it first: select rewind.create_tree(name)';
  end if;
  return v_tree;
end
$function$;

comment on function rewind._find_tree(text) is 'The tree of a name; raises RW005 if there is none.';
