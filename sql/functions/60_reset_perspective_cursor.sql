-- Takes a stream of a perspective back to nothing: model, snapshots and lock go, the cursor stands at the beginning, flagged from its
-- first matching event; the rewind path builds it anew. Beside an in-place rebuild the only thing that moves a cursor back.
-- Locks: stream lock row, cursor. Errors: RW006, RW013 the stream has no cursor, RW014, RW020, 40001.
create or replace function rewind.reset_perspective_cursor(p_perspective text, p_stream text, p_options jsonb default '{}')
  returns setof rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_cursor rewind.perspective_cursors;
  v_generation rewind.perspective_generations;
begin
  v_cursor := rewind._lock_cursor(p_perspective, p_stream, p_options);
  v_generation := rewind._perspective_generation(p_perspective, null);
  delete from rewind.perspective_stream_locks where generation_id = v_cursor.generation_id and stream_id = v_cursor.stream_id;
  delete from rewind.perspective_snapshots where generation_id = v_cursor.generation_id and stream_id = v_cursor.stream_id;
  return query
  update rewind.perspective_cursors c
  set status = 32,
      model = null,
      last_event_id = null,
      applied_version = 0,
      events_applied = 0,
      rewind_trigger_event_id = (select o.least_event_id from rewind._owed_records(v_generation, v_cursor.stream_id, 0) o),
      rewind_flagged_at = n.now,
      rewind_first_flagged_at = n.now,
      error = null,
      error_event_id = null,
      attempts = 0,
      retry_at = null,
      first_event_at = null,
      last_event_at = null
  from (select rewind._now() as now offset 0) n
  where c.generation_id = v_cursor.generation_id and c.stream_id = v_cursor.stream_id
  returning c.*;
end
$function$;

comment on function rewind.reset_perspective_cursor(text, text, jsonb) is 'Takes a stream''s cursor back to the beginning.';
