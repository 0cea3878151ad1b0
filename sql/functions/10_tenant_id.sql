-- The tenant that p_options names, '' without one; for functions whose only option it is. Errors: 22023.
create or replace function rewind._tenant_id(p_options jsonb) returns text
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tenant_id text;
begin
  if p_options is null or p_options = '{}' then
    return '';
  end if;
  perform rewind._check_options(p_options, array['tenant_id']);
  v_tenant_id := coalesce(p_options ->> 'tenant_id', '');
  perform rewind._check_name('tenant_id', v_tenant_id);
  return v_tenant_id;
end
$function$;

comment on function rewind._tenant_id(jsonb) is 'The tenant in a function''s options; refuses any other option.';
