-- Now and then, replays one of the streams that were folded out of order, of those that are no longer than ten thousand events. If its model
-- is another one, the claim that order doesn't matter is false: it is taken out of the perspective's options, and all streams that it was
-- relied on for, in all generations, are flagged to be replayed from their beginning. The last thing that a batch does; the caller holds the
-- cursors of its batch, those of others are waited for.
create or replace function rewind._check_order_claim(p_generation rewind.perspective_generations, p_late rewind.late_stream[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_class constant int := 1381433339;
  v_key constant int := hashtext(p_generation.perspective_name);
  v_late rewind.late_stream;
  v_is_false boolean := false;
  v_flagged bigint;
begin
  if random() < 0.05 then
    select l.* into v_late
    from unnest(p_late) l
    where not l.owing and l.events_applied <= 10000
    order by random()
    limit 1;
    v_is_false := found and exists (
      select from rewind._verify_points(p_generation, array[v_late.stream_id], p_segments => false, p_guarded => true)
    );
  end if;
  if not v_is_false then
    -- Either who finds it false waits for this batch, and sees what it relied on it for, or this batch sees that it was found.
    perform pg_advisory_xact_lock_shared(v_class, v_key);
    if not (rewind._perspective_options(p_generation.perspective_name) ->> 'order_insensitive')::boolean then
      perform rewind._replay_unordered(p_generation);
    end if;
    return;
  end if;

  perform pg_advisory_xact_lock(v_class, v_key);
  raise warning 'perspective "%" claims that order doesn''t matter to it, and it does: order_insensitive is off now', p_generation.perspective_name
    using hint = 'streams with late events are replayed';
  update rewind.perspectives p set options = p.options || '{"order_insensitive": false}' where p.perspective_name = p_generation.perspective_name;
  select sum(rewind._replay_unordered(g)) into v_flagged
  from rewind.perspective_generations g
  where g.perspective_name = p_generation.perspective_name;
  perform rewind._publish(t.tree_name, 'PerspectiveOrderMatters', p_generation.perspective_name, jsonb_build_object(
    'PerspectiveName', p_generation.perspective_name, 'StreamId', v_late.stream_id, 'StreamsFlagged', v_flagged))
  from rewind.trees t
  where t.tree_id = p_generation.tree_id;
end
$function$;

comment on function rewind._check_order_claim(rewind.perspective_generations, rewind.late_stream[]) is
  'Checks, on a sample, the claim that order doesn''t matter to a perspective.';
