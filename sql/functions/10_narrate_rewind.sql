-- Publishes that a rewind ended well: PerspectiveRewindCompleted, and after the last one of a stream whose rewinds overlap
-- StreamRewindCompleted. Only of what the lens shows. The caller has released its lock.
create or replace function rewind._narrate_rewind(p_rewind rewind.perspective_rewinds, p_final_event_id uuid, p_bracket timestamptz)
  returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree_name text;
begin
  if not rewind._is_active(p_rewind.generation_id) then
    return;
  end if;
  select t.tree_name into v_tree_name
  from rewind.perspective_generations g
  join rewind.trees t on t.tree_id = g.tree_id
  where g.generation_id = p_rewind.generation_id;
  perform rewind._publish(v_tree_name, 'PerspectiveRewindCompleted', p_rewind.perspective_name, jsonb_build_object(
    'stream_id', p_rewind.stream_id, 'stream_key', p_rewind.stream_key, 'perspective_name', p_rewind.perspective_name,
    'triggering_event_id', p_rewind.trigger_event_id, 'final_event_id', p_final_event_id,
    'events_replayed', p_rewind.events_replayed, 'started_at', p_rewind.started_at, 'completed_at', p_rewind.completed_at));
  if p_bracket is not null and not exists (
    select from rewind.perspective_stream_locks l
    where l.stream_id = p_rewind.stream_id and l.reason = 'rewind' and l.bracket_started_at is not null
      and l.expires_at > p_rewind.completed_at
  ) then
    perform rewind._publish(v_tree_name, 'StreamRewindCompleted', v_tree_name, (
      select jsonb_build_object('stream_id', p_rewind.stream_id, 'stream_key', p_rewind.stream_key,
        'perspective_names', jsonb_agg(distinct h.perspective_name order by h.perspective_name),
        'total_events_replayed', sum(h.events_replayed), 'started_at', p_bracket, 'completed_at', p_rewind.completed_at)
      from rewind.perspective_rewinds h
      where h.stream_id = p_rewind.stream_id and h.outcome = 'completed' and h.completed_at >= p_bracket));
  end if;
end
$function$;

comment on function rewind._narrate_rewind(rewind.perspective_rewinds, uuid, timestamptz) is 'Publishes that a rewind ended well.';
