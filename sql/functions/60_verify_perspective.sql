-- Verifies the active generation of a perspective against its log; no row: all is well. Online: every check judges each stream at its
-- cursor's own prefix within one snapshot, so that work going on gives no false alarm.
--   model           the model is not the fold of the cursor's prefix (or the fold raises); SQL perspectives
--   events_applied  events_applied or last_event_id are not those of the prefix
--   snapshot        a snapshot is not the fold of the prefix up to its event
--   owed            a record that the live path has passed is neither applied nor owed by a flag
--   missing_cursor  such a record in a stream without a cursor
--   orphan          a cursor or snapshot without its stream or cursor
--   log             offsets, versions or clocks of the log are not dense and ascending (changed by hand)
-- Folds each stream once, from snapshot to snapshot; streams where that finds anything are judged again, each point from the beginning.
-- p_stream: only that stream (option tenant_id). Errors: RW006, 22023 (also: no such stream).
create or replace function rewind.verify_perspective(p_perspective text, p_stream text default null, p_options jsonb default '{}')
  returns setof rewind.verify_problem
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_stream_id uuid;
  v_suspects uuid[];
begin
  perform rewind._check_options(p_options, array['tenant_id']);
  v_generation := rewind._perspective_generation(p_perspective, null);
  if p_stream is not null then
    v_stream_id := (rewind._find_stream(v_generation.tree_id, p_stream, p_options)).stream_id;
  end if;
  begin
    select array_agg(distinct p.stream_id) into v_suspects
    from rewind._verify_points(v_generation, array[v_stream_id], p_segments => true, p_guarded => false) p;
  exception when others then
    if not rewind._is_fold_error(sqlstate) then
      raise;
    end if;
    select array_agg(distinct p.stream_id) into v_suspects
    from rewind._verify_points(v_generation, array[v_stream_id], p_segments => true, p_guarded => true) p;
  end;
  if v_suspects is not null then
    return query
    select p_perspective, s.stream_key, p.problem, p.expected, p.actual, p.applied_version
    from rewind._verify_points(v_generation, v_suspects, p_segments => false, p_guarded => true) p
    left join rewind.streams s on s.stream_id = p.stream_id
    order by s.stream_key, p.problem;
  end if;
  return query
  select p_perspective, s.stream_key, o.problem, o.expected, o.actual, o.applied_version
  from rewind._verify_debts(v_generation, v_stream_id) o
  left join rewind.streams s on s.stream_id = o.stream_id
  order by s.stream_key, o.problem;
  return query
  select p_perspective, s.stream_key, l.problem, l.expected, l.actual, l.applied_version
  from rewind._verify_log(v_generation.tree_id, v_stream_id) l
  left join rewind.streams s on s.stream_id = l.stream_id
  order by s.stream_key;
end
$function$;

comment on function rewind.verify_perspective(text, text, jsonb) is 'Verifies a perspective against its log; no row: all is well.';
