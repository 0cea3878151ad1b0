-- Raises an error about events of a call. p_errors: [{"index": 0, ...}], one entry per complaint, counted from 0 in call order.
create or replace function rewind._refuse_events(p_code text, p_message text, p_errors jsonb, p_hint text) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception '%', p_message using
    errcode = p_code,
    detail = jsonb_build_object('errors', p_errors)::text,
    hint = p_hint;
end
$function$;

comment on function rewind._refuse_events(text, text, jsonb, text) is 'Raises an error that names every event of a call that is to blame.';
