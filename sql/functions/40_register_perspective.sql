-- Registers a perspective that a worker folds in Go; the worker calls it when it starts. Same definition: nothing changes.
-- Errors: RW005 unknown tree, RW007 another definition, RW020, RW010 the tree was trimmed, 22023.
create or replace function rewind.register_perspective(
  p_name text,
  p_tree text,
  p_event_types text[] default null,
  p_version int default 1,
  p_options jsonb default '{}'
) returns setof rewind.perspectives
  language sql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
  select * from rewind._put_perspective(p_name, p_tree, null, p_event_types, null, p_version, p_options);
$function$;

comment on function rewind.register_perspective(text, text, text[], int, jsonb) is 'Registers a perspective that is folded in Go.';
