-- Options in effect: defaults, then the installation's, then p_own (a perspective's or a tree's).
create or replace function rewind._options(p_own jsonb) returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_options jsonb;
begin
  select rewind._option_defaults() || s.options || p_own into v_options from rewind.settings s where s.singleton;
  return v_options;
end
$function$;

comment on function rewind._options(jsonb) is 'The options in effect for a perspective or tree that has p_own.';
