-- Takes the stream lock of a cursor if it is free or expired by the database's clock: a new fencing token, or null if it is held.
-- The same owner is refused as anybody else, so that an older attempt of a worker never shares a lock with its newer one.
create or replace function rewind._acquire_stream_lock(
  p_generation_id int, p_stream_id uuid, p_owner text, p_reason text, p_options jsonb,
  p_trigger_event_id uuid default null, p_events_behind bigint default 0, p_deaths int default 0
) returns bigint
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  insert into rewind.perspective_stream_locks as l (
    generation_id, stream_id, owner, reason, token, acquired_at, expires_at, trigger_event_id, events_behind, deaths
  )
  select p_generation_id, p_stream_id, p_owner, p_reason, nextval('rewind.fencing_tokens'), n.now,
    n.now + (p_options ->> 'stream_lock_timeout')::interval, p_trigger_event_id, p_events_behind, p_deaths
  from (select rewind._now() as now offset 0) n
  on conflict (stream_id, generation_id) do update
  set owner = excluded.owner,
      reason = excluded.reason,
      token = excluded.token,
      acquired_at = excluded.acquired_at,
      expires_at = excluded.expires_at,
      trigger_event_id = excluded.trigger_event_id,
      events_behind = excluded.events_behind,
      bracket_started_at = null,
      deaths = excluded.deaths,
      alone = false
  where l.expires_at <= excluded.acquired_at
  returning token;
$function$;

comment on function rewind._acquire_stream_lock(int, uuid, text, text, jsonb, uuid, bigint, int) is
  'Takes a stream lock and returns its fencing token; null if it is held.';
