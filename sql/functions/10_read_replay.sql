-- The next candidate events of a stream in chronology up to a version: a page of a replay in Go. At most p_limit, of at most about
-- p_max_bytes (_event_size), but at least one if there is any.
-- It reads no more than that.
create or replace function rewind._read_replay(
  p_generation_id int, p_stream_id uuid, p_after_event_id uuid, p_to_version bigint, p_limit int, p_max_bytes bigint
) returns setof rewind.replay_event
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_event rewind.replay_event;
  v_size int;
  v_bytes bigint := 0;
begin
  for v_event in
    select w.event_id, w.event_type, w.payload, w.metadata, rewind._is_skipped(g.perspective_name, p_stream_id, w.event_id, rewind._is_active(p_generation_id))
    from rewind.perspective_generations g
    cross join lateral (
      select v.event_id, v.event_type, v.payload, v.metadata
      from rewind.wal v
      where v.stream_id = p_stream_id and v.event_id > coalesce(p_after_event_id, '00000000-0000-0000-0000-000000000000')
        and v.stream_version <= p_to_version
        and v.kind = 6 and (g.event_types is null or v.event_type = any (g.event_types))
      order by v.event_id
      limit p_limit
    ) w
    where g.generation_id = p_generation_id
    order by w.event_id
  loop
    v_size := rewind._event_size(v_event.payload, v_event.metadata);
    exit when v_bytes > 0 and v_bytes + v_size > p_max_bytes;
    v_bytes := v_bytes + v_size;
    return next v_event;
  end loop;
end
$function$;

comment on function rewind._read_replay(int, uuid, uuid, bigint, int, bigint) is 'A page of a stream''s events in chronology, for a replay in Go.';
