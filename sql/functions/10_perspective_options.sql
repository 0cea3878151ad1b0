-- Effective options of a perspective: its own over the installation's over the defaults.
create or replace function rewind._perspective_options(p_perspective text) returns jsonb
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select rewind._options(p.options) from rewind.perspectives p where p.perspective_name = p_perspective;
$function$;

comment on function rewind._perspective_options(text) is 'Effective options of a perspective.';
