-- Options in effect for a tree.
create or replace function rewind._tree_options(p_tree_id int) returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_options jsonb;
begin
  select rewind._option_defaults() || s.options || t.options into v_options
  from rewind.settings s
  join rewind.trees t on t.tree_id = p_tree_id
  where s.singleton;
  return v_options;
end
$function$;

comment on function rewind._tree_options(int) is 'The options in effect for a tree.';
