-- Lets a failed or parked stream be tried again at once, with all its attempts, in all generations. Returns the active generation's cursor,
-- as it is if the stream did not fail there, then those of others in which it did. Locks: stream lock row (if any), cursors. Errors: RW006, RW013 the stream has no cursor, RW014, RW020, 40001.
create or replace function rewind.retry_perspective_stream(p_perspective text, p_stream text, p_options jsonb default '{}')
  returns setof rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_cursor rewind.perspective_cursors;
begin
  v_cursor := rewind._lock_cursor(p_perspective, p_stream, p_options);
  return query
  update rewind.perspective_cursors c
  set attempts = case when c.status & 4 <> 0 then 0 else c.attempts end,
      retry_at = case when c.status & 4 <> 0 then rewind._now() else c.retry_at end
  where c.generation_id = v_cursor.generation_id and c.stream_id = v_cursor.stream_id
  returning c.*;
  return query
  update rewind.perspective_cursors c
  set attempts = 0,
      retry_at = rewind._now()
  from rewind.perspective_generations g
  where g.perspective_name = p_perspective and g.generation_id <> v_cursor.generation_id
    and c.generation_id = g.generation_id and c.stream_id = v_cursor.stream_id and c.status & 4 <> 0
  returning c.*;
end
$function$;

comment on function rewind.retry_perspective_stream(text, text, jsonb) is 'Lets a failed stream be tried again at once.';
