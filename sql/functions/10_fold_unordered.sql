-- For a perspective that claims that order doesn't matter to it: late streams of a batch are taken as if they were in order, but for those
-- that owe already, which are returned. What makes that safe to take back: snapshots at or after what is late go, as ever, and the streams are
-- put down, so that they are replayed if the claim turns out false. The caller holds the cursors.
create or replace function rewind._fold_unordered(p_generation rewind.perspective_generations, p_late rewind.late_stream[])
  returns rewind.late_stream[]
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  delete from rewind.perspective_snapshots n
  using unnest(p_late) l
  where n.generation_id = p_generation.generation_id and n.stream_id = l.stream_id and n.event_id >= l.trigger_event_id and not l.owing;
  insert into rewind.unordered_folds (generation_id, stream_id)
  select p_generation.generation_id, l.stream_id from unnest(p_late) l where not l.owing
  on conflict (generation_id, stream_id) do nothing;
  return array(select l from unnest(p_late) l where l.owing);
end
$function$;

comment on function rewind._fold_unordered(rewind.perspective_generations, rewind.late_stream[]) is
  'Takes late streams as if they were in order.';
