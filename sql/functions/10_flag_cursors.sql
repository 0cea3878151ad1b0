-- Flags cursors RewindRequired, the trigger min-merged; the debounce slides (rewind_flagged_at) under the first flag's cap.
-- The caller holds the cursors' row locks.
create or replace function rewind._flag_cursors(p_generation_id int, p_stream_ids uuid[], p_trigger_event_ids uuid[])
  returns setof rewind.perspective_cursors
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  update rewind.perspective_cursors c
  set status = (c.status | 32) & ~2,
      rewind_trigger_event_id = least(c.rewind_trigger_event_id, f.trigger_event_id),
      rewind_flagged_at = f.now,
      rewind_first_flagged_at = coalesce(c.rewind_first_flagged_at, f.now)
  from (
    select u.stream_id, u.trigger_event_id, rewind._now() as now
    from unnest(p_stream_ids, p_trigger_event_ids) u (stream_id, trigger_event_id)
    offset 0
  ) f
  where c.generation_id = p_generation_id and c.stream_id = f.stream_id
  returning c.*;
$function$;

comment on function rewind._flag_cursors(int, uuid[], uuid[]) is 'Flags cursors for the rewind path.';
