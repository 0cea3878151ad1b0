-- How long a move waits for transactions that have appended: the option timeout. Errors: 22023.
create or replace function rewind._move_timeout(p_options jsonb) returns interval
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_text constant text := coalesce(p_options ->> 'timeout', '30s');
  v_timeout interval;
begin
  perform rewind._check_options(p_options, array['timeout']);
  begin
    v_timeout := v_text::interval;
  exception when data_exception then
    v_timeout := null;
  end;
  if (v_timeout >= interval '0') is not true then
    raise exception 'timeout must be a duration, such as 30s, not %', v_text using errcode = '22023';
  end if;
  return v_timeout;
end
$function$;

comment on function rewind._move_timeout(jsonb) is 'How long a move waits for transactions that have appended.';
