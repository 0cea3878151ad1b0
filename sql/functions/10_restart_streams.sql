-- Takes cursors back to nothing; they owe everything (8). A repair under way loses its lock: the caller
-- holds the lock rows, or one could be claimed meanwhile. Locks: cursors.
create or replace function rewind._restart_streams(p_generation_id int, p_stream_ids uuid[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  delete from rewind.perspective_stream_locks l where l.generation_id = p_generation_id and l.stream_id = any (p_stream_ids);
  update rewind.perspective_cursors c
  set status = 8,
      model = null,
      last_event_id = null,
      applied_version = 0,
      events_applied = 0,
      rewind_trigger_event_id = null,
      rewind_flagged_at = null,
      rewind_first_flagged_at = null,
      error = null,
      error_event_id = null,
      attempts = 0,
      retry_at = null,
      first_event_at = null,
      last_event_at = null
  where c.generation_id = p_generation_id and c.stream_id = any (p_stream_ids);
  delete from rewind.perspective_snapshots n where n.generation_id = p_generation_id and n.stream_id = any (p_stream_ids);
end
$function$;

comment on function rewind._restart_streams(int, uuid[]) is 'Takes cursors back to nothing.';
