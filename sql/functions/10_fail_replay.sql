-- Records a failed repair under the cursor's lock: Failed, error, event, backoff; the flag stays. Attempts count from one again when
-- another event fails than the last time, since then the stream has got further.
create or replace function rewind._fail_replay(
  p_cursor rewind.perspective_cursors, p_error text, p_error_event_id uuid, p_options jsonb
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_attempts constant int :=
    case when p_error_event_id is distinct from p_cursor.error_event_id then 1 else p_cursor.attempts + 1 end;
begin
  update rewind.perspective_cursors
  set status = (status | 4) & ~2,
      error = p_error,
      error_event_id = p_error_event_id,
      attempts = v_attempts,
      retry_at = rewind._retry_at(p_options, v_attempts)
  where generation_id = p_cursor.generation_id and stream_id = p_cursor.stream_id;
end
$function$;

comment on function rewind._fail_replay(rewind.perspective_cursors, text, uuid, jsonb) is 'Records a failed repair on its cursor.';
