-- Begins an in-place rebuild of the active generation: deletes its models, cursors and snapshots, and takes its positions back to the
-- beginning, to be built up to where the log ends now. Skips that wait for a rewind count from here on.
-- Locks: stream lock rows, all partitions, cursors.
create or replace function rewind._begin_in_place(p_perspective rewind.perspectives, p_held boolean) returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation_id constant int := p_perspective.active_generation;
begin
  perform rewind._take_stream_locks(p_perspective.perspective_name, array(
    select k.stream_id from rewind.perspective_skips k where k.perspective_name = p_perspective.perspective_name and not k.effective
    union
    select l.stream_id from rewind.perspective_stream_locks l where l.generation_id = v_generation_id
  ));
  delete from rewind.perspective_stream_locks where generation_id = v_generation_id;
  perform from rewind.perspective_partitions t
  where t.generation_id in (select g.generation_id from rewind.perspective_generations g where g.perspective_name = p_perspective.perspective_name)
  order by t.generation_id, t.wal_partition
  for update;
  perform rewind._enact_skips(p_perspective.perspective_name, v_generation_id, null);
  delete from rewind.perspective_cursors where generation_id = v_generation_id;
  delete from rewind.perspective_snapshots where generation_id = v_generation_id;
  update rewind.perspective_partitions t
  set next_offset = 0,
      cut_offset = rewind._head_offset(p_perspective.tree_id, t.wal_partition),
      streams_built = 0,
      events_built = 0
  where t.generation_id = v_generation_id;
  return query select * from rewind._start_rebuild(p_perspective.perspective_name, v_generation_id, 'in-place', p_held);
end
$function$;

comment on function rewind._begin_in_place(rewind.perspectives, boolean) is 'Begins an in-place rebuild of the active generation.';
