-- An option that is a duration, which is not negative and that now can be put off by. The caller has checked the options. Errors: 22023.
create or replace function rewind._duration_option(p_options jsonb, p_name text, p_default text) returns interval
  language plpgsql stable parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_text constant text := coalesce(p_options ->> p_name, p_default);
  v_duration interval;
begin
  begin
    v_duration := v_text::interval;
  exception when data_exception then
    v_duration := null;
  end;
  if (v_duration between interval '0' and interval '876000 hours') is not true then
    raise exception 'option "%" must be a duration, such as %, not "%"', p_name, p_default, v_text using
      errcode = '22023', detail = jsonb_build_object('option', p_name, 'value', v_text)::text;
  end if;
  return v_duration;
end
$function$;

comment on function rewind._duration_option(jsonb, text, text) is 'An option that is a duration.';
