-- Candidate events of a stream after the trigger that its cursor had moved past: what a rewind makes up for.
create or replace function rewind._events_behind(
  p_generation rewind.perspective_generations, p_stream_id uuid, p_trigger_event_id uuid, p_last_event_id uuid
) returns bigint
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select count(*)
  from rewind.wal w
  where w.stream_id = p_stream_id and w.event_id > p_trigger_event_id and w.event_id <= p_last_event_id
    and w.kind = 6 and (p_generation.event_types is null or w.event_type = any (p_generation.event_types));
$function$;

comment on function rewind._events_behind(rewind.perspective_generations, uuid, uuid, uuid) is 'Events that a cursor had moved past before a late one.';
