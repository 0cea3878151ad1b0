-- For late streams: the nearest valid snapshot before the trigger (of today's version), and how many events a replay from it to
-- p_to_versions would fold, counted no further than p_max + 1. Snapshots were read under the cursors' locks, which the caller holds.
create or replace function rewind._plan_repairs(
  p_generation rewind.perspective_generations, p_stream_ids uuid[], p_trigger_event_ids uuid[], p_to_versions bigint[], p_max int
) returns setof rewind.late_repair
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select l.stream_id, l.trigger_event_id, l.to_version, n.event_id, n.model, coalesce(n.events_applied, 0), d.depth
  from unnest(p_stream_ids, p_trigger_event_ids, p_to_versions) l (stream_id, trigger_event_id, to_version)
  left join lateral (
    select s.event_id, s.model, s.events_applied
    from rewind.perspective_snapshots s
    where s.generation_id = p_generation.generation_id and s.stream_id = l.stream_id
      and s.event_id < l.trigger_event_id and s.version = p_generation.version
    order by s.event_id desc
    limit 1
  ) n on true
  cross join lateral (
    select count(*) as depth
    from (
      select
      from rewind.wal w
      where w.stream_id = l.stream_id and w.event_id > coalesce(n.event_id, '00000000-0000-0000-0000-000000000000')
        and w.stream_version <= l.to_version
        and w.kind = 6 and (p_generation.event_types is null or w.event_type = any (p_generation.event_types))
      order by w.event_id
      limit p_max + 1
    ) z
  ) d;
$function$;

comment on function rewind._plan_repairs(rewind.perspective_generations, uuid[], uuid[], bigint[], int) is
  'Restore points and depths of late streams.';
