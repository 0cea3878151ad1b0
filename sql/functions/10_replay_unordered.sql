-- Flags the streams of a generation whose late events were folded without a replay, to be replayed from their beginnings; returns how many.
-- Locks their cursors.
create or replace function rewind._replay_unordered(p_generation rewind.perspective_generations) returns bigint
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_stream_ids uuid[];
begin
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
  return coalesce(cardinality(v_stream_ids), 0);
end
$function$;

comment on function rewind._replay_unordered(rewind.perspective_generations) is 'Flags streams whose late events were folded without a replay.';
