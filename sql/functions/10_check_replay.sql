-- Checks that what a replay brings back is complete: restored from before everything owed, up to p_applied_version, with exactly the
-- events of that prefix. Returns the trigger: the least owed event id (or the flag's, if less); null if nothing is owed or flagged.
-- Counted against the cursor, which costs what is owed; a full replay that differs from it (a damaged cursor) against the log itself.
-- The caller holds the cursor's row lock. Errors: RW013.
create or replace function rewind._check_replay(
  p_generation rewind.perspective_generations,
  p_cursor rewind.perspective_cursors,
  p_applied_version bigint,
  p_events_applied bigint,
  p_last_event_id uuid,
  p_snapshot_event_id uuid
) returns uuid
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_head bigint;
  v_owed rewind.owed_records;
  v_trigger uuid;
  v_expected jsonb;
  v_actual constant jsonb := jsonb_build_object('applied_version', p_applied_version, 'events_applied', p_events_applied,
    'last_event_id', p_last_event_id, 'snapshot_event_id', p_snapshot_event_id);
begin
  select w.stream_version into v_head from rewind.wal w where w.stream_id = p_cursor.stream_id order by w.stream_version desc limit 1;
  if p_applied_version is null or p_applied_version not between p_cursor.applied_version and coalesce(v_head, 0) then
    v_expected := jsonb_build_object('applied_version', jsonb_build_array(p_cursor.applied_version, coalesce(v_head, 0)));
  else
    select * into v_owed from rewind._owed_records(p_generation, p_cursor.stream_id, p_cursor.applied_version, p_applied_version);
    v_trigger := least(v_owed.least_event_id, p_cursor.rewind_trigger_event_id);
    if p_snapshot_event_id is not null and (v_owed.records = 0 or p_snapshot_event_id >= v_trigger) then
      v_expected := jsonb_build_object('snapshot_event_id', 'none, or one before the least owed event', 'trigger_event_id', v_trigger);
    elsif p_events_applied is distinct from p_cursor.events_applied + v_owed.records
      or p_last_event_id is distinct from greatest(p_cursor.last_event_id, v_owed.greatest_event_id) then
      v_expected := jsonb_build_object('events_applied', p_cursor.events_applied + v_owed.records,
        'last_event_id', greatest(p_cursor.last_event_id, v_owed.greatest_event_id));
      if p_snapshot_event_id is null then
        select * into v_owed from rewind._owed_records(p_generation, p_cursor.stream_id, 0, p_applied_version);
        if p_events_applied = v_owed.records and p_last_event_id is not distinct from v_owed.greatest_event_id then
          return v_trigger;
        end if;
        v_expected := jsonb_build_object('events_applied', v_owed.records, 'last_event_id', v_owed.greatest_event_id);
      end if;
    end if;
  end if;
  if v_expected is not null then
    raise exception 'the replay of stream % is incomplete', p_cursor.stream_id using
      errcode = 'RW013',
      detail = jsonb_build_object('generation_id', p_cursor.generation_id, 'stream_id', p_cursor.stream_id,
        'expected', v_expected, 'actual', v_actual)::text,
      hint = 'replay from the beginning';
  end if;
  return v_trigger;
end
$function$;

comment on function rewind._check_replay(
  rewind.perspective_generations, rewind.perspective_cursors, bigint, bigint, uuid, uuid
) is 'Raises RW013 unless a replay is complete; returns the trigger.';
