-- Writes the model of a checked replay, and decides what its cursor still owes: the records above p_applied_version, counted in a
-- statement after the cursor was locked.
--   none: nothing. In order and at most 100 (SQL perspectives): folded on top, nothing.
--   Late again: 32, with the new trigger. In order: nothing if the live path has yet to read them all, else 8.
create or replace function rewind._commit_prefix(
  p_generation rewind.perspective_generations,
  p_cursor rewind.perspective_cursors,
  p_model jsonb,
  p_last_event_id uuid,
  p_applied_version bigint,
  p_events_applied bigint,
  p_started_at timestamptz
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_model jsonb := p_model;
  v_last_event_id uuid := p_last_event_id;
  v_applied_version bigint := p_applied_version;
  v_events_applied bigint := p_events_applied;
  v_status int := 2;
  v_late boolean := false;
  v_rest rewind.owed_records;
  v_page rewind.replay_page;
  v_first_event_id uuid;
  v_now constant timestamptz := rewind._now();
begin
  select * into v_rest from rewind._owed_records(p_generation, p_cursor.stream_id, p_applied_version);
  if v_rest.records > 0 then
    v_late := v_rest.least_event_id < p_last_event_id;
    if not v_late and p_generation.apply is not null and v_rest.records <= 100 then
      select * into v_page
      from rewind._replay_page(p_generation, p_cursor.stream_id, p_model, p_last_event_id, v_rest.last_version, 100);
    end if;
    if v_page.events_folded = v_rest.records and v_page.error is null then
      v_model := v_page.model;
      v_last_event_id := v_page.last_event_id;
      v_applied_version := v_rest.last_version;
      v_events_applied := v_events_applied + v_rest.records;
    elsif v_late then
      v_status := 32;
    elsif v_rest.first_place[2] < (
      select next_offset from rewind.perspective_partitions
      where generation_id = p_generation.generation_id and wal_partition = v_rest.first_place[1]
    ) then
      v_status := 8;
    end if;
  end if;

  -- Of what is in the model since now; all of it, if that was not known before.
  select o.least_event_id into v_first_event_id
  from rewind._owed_records(p_generation, p_cursor.stream_id,
    case when p_cursor.first_event_at is null then 0 else p_cursor.applied_version end, v_applied_version) o;
  update rewind.perspective_cursors c
  set status = v_status,
      model = v_model,
      last_event_id = v_last_event_id,
      applied_version = v_applied_version,
      events_applied = v_events_applied,
      rewind_trigger_event_id = case when v_late then v_rest.least_event_id end,
      rewind_flagged_at = case when v_late then v_now end,
      rewind_first_flagged_at = case when v_late then v_now end,
      last_rewind_at = v_now,
      last_rewind_ms = extract(epoch from v_now - p_started_at) * 1000,
      error = null,
      error_event_id = null,
      attempts = 0,
      retry_at = null,
      first_event_at = least(c.first_event_at, rewind.event_time(v_first_event_id)),
      last_event_at = rewind.event_time(v_last_event_id)
  where c.generation_id = p_generation.generation_id and c.stream_id = p_cursor.stream_id;
end
$function$;

comment on function rewind._commit_prefix(
  rewind.perspective_generations, rewind.perspective_cursors, jsonb, uuid, bigint, bigint, timestamptz
) is 'Writes a replayed model and what its cursor still owes.';
