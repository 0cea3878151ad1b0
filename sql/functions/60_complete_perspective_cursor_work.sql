-- Completes a repair in one transaction: fence, completeness, prefix commit, stragglers, snapshots, history, lock.
--   The model at p_applied_version is right whatever arrived after it, so it is written. What arrived meanwhile is folded on top if it
--   is in order and little (SQL perspectives); else the flag that owes it stays: 32 with the new trigger if it is late again, 8 if the
--   live path has passed it. Whoever clears a flag has seen, in a statement after the cursor was locked, that nothing is owed.
-- A rewind (status 32) is put on record with the patch that it made, and published in $system, last of all.
-- p_snapshot_event_id: where the replay was restored (a snapshot, or the cursor's own place); null: from the beginning.
-- With p_error: nothing is written but the failure (error, attempts, backoff); flags stay, the lock is released.
-- Options: worker; events_folded (in all passes); error, error_event_id (the model is the longest prefix that folds).
-- Locks: stream lock row, cursor, partition of $system. Errors: RW008 lock lost, RW013 incomplete, or no such cursor (nothing written), RW014, RW018, RW020.
create or replace function rewind.complete_perspective_cursor_work(
  p_generation_id int,
  p_stream_id uuid,
  p_token bigint,
  p_model jsonb,
  p_last_event_id uuid,
  p_applied_version bigint,
  p_events_applied bigint,
  p_snapshot_event_id uuid default null,
  p_snapshots jsonb default '[]',
  p_error text default null,
  p_options jsonb default '{}'
) returns setof rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_lock rewind.perspective_stream_locks;
  v_before rewind.perspective_cursors;
  v_after rewind.perspective_cursors;
  v_trigger uuid;
  v_replayed bigint := 0;
  v_skips boolean;
  v_rewind rewind.perspective_rewinds;
  v_error constant text := coalesce(p_error, p_options ->> 'error');
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array['worker', 'events_folded', 'error', 'error_event_id']);
  v_generation := rewind._writable_generation(p_generation_id);
  v_options := rewind._perspective_options(v_generation.perspective_name);

  -- A skip that is recorded after this takes the lock away.
  v_skips := p_error is null and rewind._has_pending_skips(v_generation, p_stream_id);
  if v_skips then
    perform rewind._lock_everywhere(v_generation.perspective_name, p_stream_id);
  end if;
  select * into v_lock
  from rewind.perspective_stream_locks
  where generation_id = p_generation_id and stream_id = p_stream_id
  for update;
  if not found or v_lock.token is distinct from p_token or v_lock.expires_at <= rewind._now() then
    raise exception 'the lock of stream % is lost', p_stream_id using
      errcode = 'RW008',
      detail = jsonb_build_object('generation_id', p_generation_id, 'stream_id', p_stream_id, 'token', p_token,
        'held_token', v_lock.token, 'expires_at', v_lock.expires_at)::text,
      hint = 'nothing was written; whoever holds the lock now repairs the stream';
  end if;
  perform rewind._writable_generation(p_generation_id); -- once more: who pauses a perspective waits for its stream locks
  select * into v_before
  from rewind.perspective_cursors
  where generation_id = p_generation_id and stream_id = p_stream_id
  for update;
  if not found then
    raise exception 'stream % has no cursor in generation %', p_stream_id, p_generation_id using
      errcode = 'RW013', detail = jsonb_build_object('generation_id', p_generation_id, 'stream_id', p_stream_id)::text;
  end if;

  if p_error is null then
    v_trigger := rewind._check_replay(v_generation, v_before, p_applied_version, p_events_applied, p_last_event_id, p_snapshot_event_id);
    v_replayed := p_events_applied - coalesce((
      select n.events_applied
      from rewind.perspective_snapshots n
      where n.generation_id = p_generation_id and n.stream_id = p_stream_id and n.event_id = p_snapshot_event_id
    ), 0);
    delete from rewind.perspective_snapshots
    where generation_id = p_generation_id and stream_id = p_stream_id
      and (event_id >= v_trigger or p_snapshot_event_id is null);
    perform rewind._save_snapshots(v_generation, p_stream_id, p_snapshots, p_last_event_id, v_options);
    perform rewind._commit_prefix(v_generation, v_before, nullif(p_model, 'null'), p_last_event_id,
      p_applied_version, p_events_applied, v_lock.acquired_at);
    if v_skips then
      perform rewind._enact_skips(v_generation.perspective_name, p_generation_id, p_stream_id);
    end if;
  end if;
  if v_error is not null then
    perform rewind._fail_replay(v_before, v_error, (p_options ->> 'error_event_id')::uuid, v_options);
  end if;

  select * into strict v_after from rewind.perspective_cursors where generation_id = p_generation_id and stream_id = p_stream_id;
  if v_before.status & 32 <> 0 then
    insert into rewind.perspective_rewinds (
      perspective_name, generation_id, stream_id, stream_key, trigger_event_id, snapshot_event_id, replay_source,
      events_replayed, events_folded, events_behind, started_at, completed_at, outcome, error, worker, patch
    )
    select
      v_generation.perspective_name, p_generation_id, p_stream_id, s.stream_key, coalesce(v_trigger, v_lock.trigger_event_id),
      p_snapshot_event_id, case when p_snapshot_event_id is null then 'full' else 'snapshot' end,
      v_replayed, coalesce((p_options ->> 'events_folded')::bigint, v_replayed), v_lock.events_behind,
      v_lock.acquired_at, rewind._now(), case when v_error is null then 'completed' else 'failed' end, v_error,
      coalesce(p_options ->> 'worker', v_lock.owner), case when p_error is null then rewind._json_patch(v_before.model, v_after.model) end
    from rewind.streams s
    where s.stream_id = p_stream_id
    returning * into v_rewind;
  end if;
  delete from rewind.perspective_stream_locks where generation_id = p_generation_id and stream_id = p_stream_id;
  if v_rewind.outcome = 'completed' then
    perform rewind._narrate_rewind(v_rewind, v_after.last_event_id, v_lock.bracket_started_at);
  end if;
  return next v_after;
end
$function$;

comment on function rewind.complete_perspective_cursor_work(
  int, uuid, bigint, jsonb, uuid, bigint, bigint, uuid, jsonb, text, jsonb
) is 'Completes a repair: writes model and cursor, or records its failure.';
