-- Begins a rebuild of selected streams of the active generation: their snapshots and stream locks go, and they are flagged from their
-- beginnings, due at once; the rewind path replays them, and the lens shows their models meanwhile, but for those that failed. A stream that has events but no cursor
-- gets one; one that has none yet is as if it weren't named. Locks: stream lock rows, partitions, cursors.
create or replace function rewind._begin_streams(p_perspective rewind.perspectives, p_stream_ids uuid[]) returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_stream_ids uuid[];
  v_now constant timestamptz := rewind._now();
begin
  select * into strict v_generation from rewind.perspective_generations where generation_id = p_perspective.active_generation;
  delete from rewind.perspective_stream_locks where generation_id = v_generation.generation_id and stream_id = any (p_stream_ids);
  v_stream_ids := array(
    select s.stream_id
    from unnest(p_stream_ids) s (stream_id)
    where (select o.records from rewind._owed_records(v_generation, s.stream_id, 0) o) > 0
  );
  perform rewind._repair_streams(v_generation, v_stream_ids);
  update rewind.perspective_cursors c
  set status = 32,
      rewind_flagged_at = v_now,
      rewind_first_flagged_at = v_now,
      last_rewind_at = null,
      error = null,
      error_event_id = null,
      attempts = 0,
      retry_at = v_now  -- whatever the debounce
  where c.generation_id = v_generation.generation_id and c.stream_id = any (v_stream_ids);
  return query
  select * from rewind._start_rebuild(p_perspective.perspective_name, v_generation.generation_id, 'streams', p_stream_ids => v_stream_ids);
end
$function$;

comment on function rewind._begin_streams(rewind.perspectives, uuid[]) is 'Begins a rebuild of selected streams.';
