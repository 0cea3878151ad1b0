-- RW016: a fold raised. p_error: {"event_id", "sqlstate", "message"}, as the fold's state has it.
create or replace function rewind._refuse_fold(p_perspective text, p_stream text, p_error jsonb) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception 'the fold of perspective "%" raises at event % of stream "%": %', p_perspective, p_error ->> 'event_id', p_stream,
    p_error ->> 'message' using
    errcode = 'RW016',
    detail = (p_error || jsonb_build_object('perspective_name', p_perspective, 'stream_key', p_stream))::text;
end
$function$;

comment on function rewind._refuse_fold(text, text, jsonb) is 'Raises what a fold raised.';
