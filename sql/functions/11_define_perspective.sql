-- The part of create_perspective that needs the owner's rights: tables, fold and view of a generation. It calls no function of a user's.
-- Errors: RW005, RW007, RW010, 22023.
create or replace function rewind._define_perspective(
  p_name text, p_tree text, p_apply regprocedure, p_event_types text[], p_initial jsonb, p_version int, p_options jsonb
) returns setof rewind.perspectives
  language sql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
  select * from rewind._put_perspective(p_name, p_tree, p_apply::text, p_event_types, p_initial, p_version, p_options);
$function$;

comment on function rewind._define_perspective(text, text, regprocedure, text[], jsonb, int, jsonb) is
  'Creates a perspective whose apply function was checked.';
