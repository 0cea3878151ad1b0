-- Saves the snapshots that a replay took, and thins the stream's to a ladder. Errors: 22023 malformed, or after the replay's end.
create or replace function rewind._save_snapshots(
  p_generation rewind.perspective_generations, p_stream_id uuid, p_snapshots jsonb, p_last_event_id uuid, p_options jsonb
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if coalesce(jsonb_typeof(p_snapshots), 'null') <> 'array' or exists (
    select from jsonb_array_elements(p_snapshots) s
    where jsonb_typeof(s) <> 'object' or s ->> 'event_id' is null or s ->> 'applied_version' is null
      or s ->> 'events_applied' is null or (s ->> 'event_id')::uuid > p_last_event_id
  ) then
    raise exception 'snapshots must be a list of {"event_id", "applied_version", "events_applied", "model"}, none after the replay''s end'
    using errcode = '22023';
  end if;
  if not (p_options ->> 'snapshots_enabled')::boolean then
    return;
  end if;
  insert into rewind.perspective_snapshots as n (
    generation_id, stream_id, event_id, applied_version, events_applied, model, version, reason
  )
  select p_generation.generation_id, p_stream_id, (s ->> 'event_id')::uuid, (s ->> 'applied_version')::bigint,
    (s ->> 'events_applied')::bigint, nullif(s -> 'model', 'null'), p_generation.version, 'rewind'
  from jsonb_array_elements(p_snapshots) s
  on conflict (stream_id, generation_id, event_id) do update
  set applied_version = excluded.applied_version,
      events_applied = excluded.events_applied,
      model = excluded.model,
      version = excluded.version,
      reason = excluded.reason,
      created_at = rewind._now();
  perform rewind._prune_snapshots(p_generation.generation_id, p_stream_id, p_options);
end
$function$;

comment on function rewind._save_snapshots(rewind.perspective_generations, uuid, jsonb, uuid, jsonb) is
  'Saves the snapshots that a replay took.';
