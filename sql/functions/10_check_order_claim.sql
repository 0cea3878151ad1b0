-- Now and then, replays one of the streams that were folded out of order, of those that are no longer than ten thousand events. If its model
-- is another one, the claim that order doesn't matter is false: it is taken out of the perspective's options, and all streams that it was
-- relied on for are flagged to be replayed from their beginning. The caller holds the cursors of its batch; those of others are waited for.
create or replace function rewind._check_order_claim(p_generation rewind.perspective_generations, p_late rewind.late_stream[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_late rewind.late_stream;
  v_stream_ids uuid[];
begin
  if random() >= 0.05 then
    return;
  end if;
  select l.* into v_late
  from unnest(p_late) l
  where not l.owing and l.events_applied <= 10000
  order by random()
  limit 1;
  if not found or not exists (
    select from rewind._verify_points(p_generation, array[v_late.stream_id], p_segments => false, p_guarded => true)
  ) then
    return;
  end if;

  raise warning 'perspective "%" claims that order doesn''t matter to it, and it does: order_insensitive is off now', p_generation.perspective_name
    using hint = 'streams with late events are replayed';
  update rewind.perspectives p set options = p.options || '{"order_insensitive": false}' where p.perspective_name = p_generation.perspective_name;
  select array_agg(c.stream_id) into v_stream_ids
  from (
    select c.stream_id
    from rewind.unordered_folds u
    join rewind.perspective_cursors c on c.generation_id = u.generation_id and c.stream_id = u.stream_id
    where u.generation_id = p_generation.generation_id
    order by c.stream_id
    for update of c
  ) c;
  delete from rewind.perspective_snapshots n
  where n.generation_id = p_generation.generation_id and n.stream_id = any (v_stream_ids);
  perform rewind._flag_cursors(p_generation.generation_id, v_stream_ids,
    array(select (rewind._owed_records(p_generation, s.stream_id, 0)).least_event_id from unnest(v_stream_ids) with ordinality s (stream_id, n) order by s.n));
  delete from rewind.unordered_folds u where u.generation_id = p_generation.generation_id and u.stream_id = any (v_stream_ids);
  perform rewind._publish(t.tree_name, 'PerspectiveOrderMatters', p_generation.perspective_name, jsonb_build_object(
    'PerspectiveName', p_generation.perspective_name, 'StreamId', v_late.stream_id, 'StreamsFlagged', cardinality(v_stream_ids)))
  from rewind.trees t
  where t.tree_id = p_generation.tree_id;
end
$function$;

comment on function rewind._check_order_claim(rewind.perspective_generations, rewind.late_stream[]) is
  'Checks, on a sample, the claim that order doesn''t matter to a perspective.';
