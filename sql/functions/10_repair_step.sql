-- One step of a repair of a claimed stream of a SQL perspective, for callers that commit between steps and hand the state on:
--   begin     choose head and restore point
--   replay    fold one page, ending where a snapshot is due; at the end go on with what arrived meanwhile in order (100 times at most)
--   complete  write. A fold that raised: the longest prefix that folds, with the failure recorded beside it. A replay that is found
--             incomplete begins again, from the beginning
--   done | failed | lost (the lock)
create or replace function rewind._repair_step(p_state rewind.repair_state) returns rewind.repair_state
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_state rewind.repair_state := p_state;
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_spacing bigint;
  v_start rewind.replay_start;
  v_page rewind.replay_page;
  v_limit int;
begin
  v_generation := rewind._writable_generation(v_state.generation_id);
  v_options := rewind._perspective_options(v_generation.perspective_name);
  v_spacing := (v_options ->> 'rewind_snapshot_interval_events')::bigint;
  if not rewind.renew_perspective_stream_lock(v_state.generation_id, v_state.stream_id, v_state.token) then
    v_state.phase := 'lost';
    return v_state;
  end if;

  case v_state.phase
  when 'begin' then
    select * into v_start
    from rewind._begin_replay(v_state.generation_id, v_state.stream_id, v_state.to_version, coalesce(v_state.from_beginning, false));
    v_state.head_version := v_start.head_version;
    v_state.restore_event_id := v_start.restore_event_id;
    v_state.last_event_id := v_start.restore_event_id;
    v_state.model := v_start.model;
    v_state.events_applied := v_start.events_applied;
    v_state.events_to_fold := v_start.events_to_fold;
    v_state.snapshots := '[]';
    v_state.passes := 0;
    v_state.phase := 'replay';
    if v_start.replay_source <> 'cursor' then
      perform rewind._announce_rewind(v_state.generation_id, v_state.stream_id, v_state.token, v_start.trigger_event_id,
        v_start.snapshot_event_id);
    end if;

  when 'replay' then
    v_limit := rewind._page_limit(v_state.events_to_fold, v_spacing, 10000);
    select * into v_page
    from rewind._replay_page(v_generation, v_state.stream_id, v_state.model, v_state.last_event_id, v_state.head_version, v_limit);
    v_state.events_folded := coalesce(v_state.events_folded, 0) + v_page.events_folded;
    if v_page.error is not null then
      v_state.error := v_page.error;
      v_state.error_event_id := v_page.error_event_id;
      v_state.to_version := rewind._folding_prefix(v_generation, v_state.stream_id, v_page.error_event_id, v_state.head_version);
      v_state.phase := case when v_state.to_version is null then 'complete' else 'begin' end;
      return v_state;
    end if;
    v_state.model := v_page.model;
    v_state.last_event_id := v_page.last_event_id;
    v_state.events_applied := v_state.events_applied + v_page.events_folded;
    v_state.events_to_fold := v_state.events_to_fold - v_page.events_folded;
    if v_state.events_applied >= v_spacing and v_page.events_folded > 0
      and rewind._is_ladder_step(v_state.events_to_fold, v_spacing) then
      v_state.snapshots := v_state.snapshots || jsonb_build_object('event_id', v_state.last_event_id,
        'applied_version', v_state.head_version, 'events_applied', v_state.events_applied, 'model', v_state.model);
    end if;
    if v_page.events_folded < v_limit then
      v_state.phase := 'complete';
      if v_state.to_version is null and v_state.passes < 100 then
        v_state.passes := v_state.passes + 1;
        v_state.head_version := coalesce(
          rewind._extend_replay(v_generation, v_state.stream_id, v_state.last_event_id, v_state.head_version), v_state.head_version);
        if v_state.head_version > p_state.head_version then
          v_state.phase := 'replay';
          v_state.events_to_fold := v_state.head_version - p_state.head_version;
        end if;
      end if;
    end if;

  when 'complete' then
    begin
      perform rewind.complete_perspective_cursor_work(v_state.generation_id, v_state.stream_id, v_state.token, v_state.model,
        v_state.last_event_id, v_state.head_version, v_state.events_applied, v_state.restore_event_id, v_state.snapshots,
        case when v_state.to_version is null then v_state.error end,
        jsonb_strip_nulls(jsonb_build_object('events_folded', v_state.events_folded, 'error_event_id', v_state.error_event_id,
          'error', case when v_state.to_version is not null then v_state.error end)));
      v_state.phase := case when v_state.error is null then 'done' else 'failed' end;
    exception
      when sqlstate 'RW008' then
        v_state.phase := 'lost';
      when sqlstate 'RW013' then
        if v_state.from_beginning then
          raise;
        end if;
        raise warning 'perspective "%": %; replaying stream % from the beginning', v_generation.perspective_name, sqlerrm, v_state.stream_id;
        v_state.from_beginning := true;
        v_state.to_version := null;
        v_state.error := null;
        v_state.error_event_id := null;
        v_state.phase := 'begin';
    end;
  end case;
  return v_state;
end
$function$;

comment on function rewind._repair_step(rewind.repair_state) is 'One step of a repair without a worker.';
