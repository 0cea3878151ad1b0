-- Puts repairs that a batch made on record and publishes them, as the rewind path does with its own. Before their models are written:
-- the patches compare with what is there. Returns what a worker's log says of each.
create or replace function rewind._record_repairs(p_generation rewind.perspective_generations, p_folds rewind.folds) returns jsonb
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_now constant timestamptz := rewind._now();
  v_repair record;
  v_rewind rewind.perspective_rewinds;
  v_tree_name text;
  v_narrated jsonb := jsonb '[]';
begin
  select tree_name into v_tree_name from rewind.trees where tree_id = p_generation.tree_id;
  for v_repair in
    select f.*, s.stream_key, c.model as old_model, c.last_event_id as cursor_event_id, b.events_behind
    from unnest(p_folds.stream_ids, p_folds.models, p_folds.last_event_ids, p_folds.trigger_event_ids, p_folds.restore_event_ids,
      p_folds.events_folded) f (stream_id, model, last_event_id, trigger_event_id, restore_event_id, events_folded)
    join rewind.streams s on s.stream_id = f.stream_id
    join rewind.perspective_cursors c on c.stream_id = f.stream_id and c.generation_id = p_generation.generation_id
    cross join lateral rewind._events_behind(p_generation, f.stream_id, f.trigger_event_id, c.last_event_id) b (events_behind)
    where f.trigger_event_id is not null
    order by f.stream_id
  loop
    insert into rewind.perspective_rewinds (
      perspective_name, generation_id, stream_id, stream_key, trigger_event_id, snapshot_event_id, replay_source,
      events_replayed, events_folded, events_behind, started_at, completed_at, outcome, patch
    ) values (
      p_generation.perspective_name, p_generation.generation_id, v_repair.stream_id, v_repair.stream_key, v_repair.trigger_event_id,
      v_repair.restore_event_id, case when v_repair.restore_event_id is null then 'full' else 'snapshot' end,
      v_repair.events_folded, v_repair.events_folded, v_repair.events_behind, v_now, v_now, 'completed',
      rewind._json_patch(v_repair.old_model, v_repair.model)
    ) returning * into v_rewind;
    if rewind._is_active(p_generation.generation_id) then
      perform rewind._publish(v_tree_name, 'PerspectiveRewindStarted', v_rewind.perspective_name,
        rewind._rewind_started(v_rewind.perspective_name, v_rewind.stream_id, v_rewind.stream_key, v_rewind.trigger_event_id,
          v_rewind.snapshot_event_id, v_now));
    end if;
    perform rewind._narrate_rewind(v_rewind, v_repair.last_event_id, null);
    v_narrated := v_narrated || jsonb_build_object('stream_id', v_repair.stream_id, 'stream_key', v_repair.stream_key,
      'cursor_event_id', v_repair.cursor_event_id, 'trigger_event_id', v_repair.trigger_event_id, 'events_behind', v_repair.events_behind,
      'events_replayed', v_repair.events_folded, 'replay_source', v_rewind.replay_source);
  end loop;
  return v_narrated;
end
$function$;

comment on function rewind._record_repairs(rewind.perspective_generations, rewind.folds) is 'Puts repairs that a batch made on record.';
