-- Flags a stream to be replayed from its beginning, whatever it owes; its model stays shown until then.
-- Locks: stream lock row (if any), cursor. Errors: RW006, RW013 the stream has no cursor, RW014, RW020, 40001.
create or replace function rewind.request_perspective_rewind(p_perspective text, p_stream text, p_options jsonb default '{}')
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
  return query
  select f.*
  from rewind._owed_records(v_generation, v_cursor.stream_id, 0) o
  cross join lateral rewind._flag_cursors(v_cursor.generation_id, array[v_cursor.stream_id], array[o.least_event_id]) f;
end
$function$;

comment on function rewind.request_perspective_rewind(text, text, jsonb) is 'Asks for a replay of a stream from its beginning.';
