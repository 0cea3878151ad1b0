-- Chooses where a replay starts, without locks: the head of the stream now (or p_to_version, to stop short of a failing event), the
-- trigger (the least event id owed up to there, or the flag's if that is less), and the restore point: the cursor's own model if
-- nothing owed is late; else the latest snapshot of today's version before the trigger; else the beginning. With nothing owed, or
-- p_full, it is the beginning. Errors: RW018, RW014, RW013 there is no such cursor.
create or replace function rewind._begin_replay(
  p_generation_id int, p_stream_id uuid, p_to_version bigint default null, p_full boolean default false
) returns setof rewind.replay_start
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_generation rewind.perspective_generations;
  v_cursor rewind.perspective_cursors;
  v_head bigint;
  v_owed rewind.owed_records;
  v_start rewind.replay_start;
begin
  v_generation := rewind._writable_generation(p_generation_id);
  select * into v_cursor from rewind.perspective_cursors where generation_id = p_generation_id and stream_id = p_stream_id;
  if not found then
    raise exception 'stream % has no cursor in generation %', p_stream_id, p_generation_id using
      errcode = 'RW013', detail = jsonb_build_object('generation_id', p_generation_id, 'stream_id', p_stream_id)::text;
  end if;
  select w.stream_version into v_head from rewind.wal w where w.stream_id = p_stream_id order by w.stream_version desc limit 1;
  v_start.head_version := greatest(least(v_head, p_to_version), v_cursor.applied_version);
  select * into v_owed from rewind._owed_records(v_generation, p_stream_id, v_cursor.applied_version, v_start.head_version);
  v_start.trigger_event_id := least(v_owed.least_event_id, v_cursor.rewind_trigger_event_id);
  v_start.replay_source := 'full';
  v_start.events_applied := 0;
  if not p_full and v_owed.records > 0 then
    if v_start.trigger_event_id > v_cursor.last_event_id then
      v_start.replay_source := 'cursor';
      v_start.restore_event_id := v_cursor.last_event_id;
      v_start.model := v_cursor.model;
      v_start.events_applied := v_cursor.events_applied;
    else
      select n.event_id, n.event_id, n.model, n.events_applied, 'snapshot'
      into v_start.restore_event_id, v_start.snapshot_event_id, v_start.model, v_start.events_applied, v_start.replay_source
      from rewind.perspective_snapshots n
      where n.generation_id = p_generation_id and n.stream_id = p_stream_id
        and n.event_id < v_start.trigger_event_id and n.version = v_generation.version
      order by n.event_id desc
      limit 1;
      if not found then
        v_start.replay_source := 'full';
        v_start.events_applied := 0;
      end if;
    end if;
  end if;
  v_start.events_to_fold := greatest(v_cursor.events_applied + v_owed.records - v_start.events_applied, 0);
  return next v_start;
end
$function$;

comment on function rewind._begin_replay(int, uuid, bigint, boolean) is 'Chooses head, trigger and restore point of a replay.';
