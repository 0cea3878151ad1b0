-- Publishes that a rewind starts, once its restore point is chosen: PerspectiveRewindStarted, and before the first one of a stream
-- whose rewinds overlap StreamRewindStarted. In a transaction of its own. A stream that only caught up is not announced,
-- nor what happens to a generation that the lens doesn't show.
create or replace function rewind._announce_rewind(
  p_generation_id int, p_stream_id uuid, p_token bigint, p_trigger_event_id uuid, p_snapshot_event_id uuid
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_names record;
  v_started timestamptz := rewind._now();
  v_bracket timestamptz;
begin
  if not rewind._is_active(p_generation_id) then
    return;
  end if;
  select g.perspective_name, t.tree_name, s.stream_key into v_names
  from rewind.perspective_generations g
  join rewind.trees t on t.tree_id = g.tree_id
  join rewind.streams s on s.stream_id = p_stream_id
  where g.generation_id = p_generation_id;
  -- One at a time per stream: of two rewinds that begin together the second finds the first one's bracket.
  perform from rewind.perspective_stream_locks where stream_id = p_stream_id order by generation_id for update;
  select min(l.bracket_started_at) into v_bracket
  from rewind.perspective_stream_locks l
  where l.stream_id = p_stream_id and l.reason = 'rewind' and l.expires_at > v_started;
  update rewind.perspective_stream_locks
  set bracket_started_at = coalesce(v_bracket, v_started)
  where stream_id = p_stream_id and generation_id = p_generation_id and token = p_token;
  if not found then
    return;
  end if;
  if v_bracket is null then
    perform rewind._publish(v_names.tree_name, 'StreamRewindStarted', v_names.tree_name, jsonb_build_object(
      'stream_id', p_stream_id, 'stream_key', v_names.stream_key, 'started_at', v_started, 'perspective_names', (
        select jsonb_agg(distinct g.perspective_name order by g.perspective_name)
        from rewind.perspective_stream_locks l
        join rewind.perspective_generations g on g.generation_id = l.generation_id
        where l.stream_id = p_stream_id and l.reason = 'rewind' and l.expires_at > v_started)));
  end if;
  perform rewind._publish(v_names.tree_name, 'PerspectiveRewindStarted', v_names.perspective_name,
    rewind._rewind_started(v_names.perspective_name, p_stream_id, v_names.stream_key, p_trigger_event_id, p_snapshot_event_id, v_started));
end
$function$;

comment on function rewind._announce_rewind(int, uuid, bigint, uuid, uuid) is 'Publishes that a rewind starts.';
