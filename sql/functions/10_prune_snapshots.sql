-- Keeps a stream's snapshots a ladder: dense near the head, sparse far from it. With x the distances from the head in events
-- (x[1] the newest snapshot, the beginning a free one at the end), from the newest on x[i] goes if x[i+1] <= 2 x[i-1] + N; over the
-- cap, the one with the least x[i+1] / (x[i-1] + N) goes. A late event at depth d then replays at most 2 d + max(N, spacing), in a
-- stream of any length.
create or replace function rewind._prune_snapshots(p_generation_id int, p_stream_id uuid, p_options jsonb) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_spacing constant bigint := (p_options ->> 'rewind_snapshot_interval_events')::bigint;
  v_cap constant int := (p_options ->> 'max_snapshots_per_stream')::int;
  v_events bigint[];
  v_dropped bigint[] := array[]::bigint[];
  v_head bigint;
  v_ratio double precision;
  v_least double precision;
  v_victim int;
  i int := 2;
begin
  select array_agg(n.events_applied order by n.event_id desc)
  into v_events
  from rewind.perspective_snapshots n
  where n.generation_id = p_generation_id and n.stream_id = p_stream_id;
  v_head := v_events[1];
  while i <= cardinality(v_events) loop
    if v_head - coalesce(v_events[i + 1], 0) <= 2 * (v_head - v_events[i - 1]) + v_spacing then
      v_dropped := v_dropped || v_events[i];
      v_events := v_events[:i - 1] || v_events[i + 1:];
    else
      i := i + 1;
    end if;
  end loop;
  while cardinality(v_events) > v_cap loop
    v_least := 'infinity';
    for v_place in 2 .. cardinality(v_events) loop
      v_ratio := (v_head - coalesce(v_events[v_place + 1], 0))::double precision / (v_head - v_events[v_place - 1] + v_spacing);
      if v_ratio < v_least then
        v_least := v_ratio;
        v_victim := v_place;
      end if;
    end loop;
    v_victim := coalesce(v_victim, 1);
    v_dropped := v_dropped || v_events[v_victim];
    v_events := v_events[:v_victim - 1] || v_events[v_victim + 1:];
    v_victim := null;
  end loop;
  if v_dropped <> '{}' then
    delete from rewind.perspective_snapshots
    where generation_id = p_generation_id and stream_id = p_stream_id and events_applied = any (v_dropped);
  end if;
end
$function$;

comment on function rewind._prune_snapshots(int, uuid, jsonb) is 'Thins a stream''s snapshots to a ladder and holds their cap.';
