-- Creates a perspective that folds in SQL, with its lens view. Calling it again with the same definition changes nothing.
-- It starts at the beginning of the log. The function is tried here, with the caller's rights, and what it takes is then made with the
-- owner's (_define_perspective): for the schema's owner and members of rewind_admin.
-- Errors: 42P13 unsuitable function, RW005 unknown tree, RW007 another definition, RW020, RW010 the tree was trimmed, 22023.
create or replace function rewind.create_perspective(
  p_name text,
  p_tree text,
  p_apply regprocedure,
  p_event_types text[] default null,
  p_initial jsonb default '{}',
  p_version int default 1,
  p_options jsonb default '{}'
) returns setof rewind.perspectives
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if p_initial is null or p_initial = 'null' then
    raise exception 'initial must be a model: an apply function never gets null' using errcode = '22023';
  end if;
  perform rewind._check_apply(p_apply, p_initial);
  return query select * from rewind._define_perspective(p_name, p_tree, p_apply, p_event_types, p_initial, p_version, p_options);
end
$function$;

comment on function rewind.create_perspective(text, text, regprocedure, text[], jsonb, int, jsonb) is
  'Creates a perspective that folds in SQL.';
