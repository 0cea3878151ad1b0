-- Compares models and snapshots (the points of a stream, in chronology) with folds of the cursor's prefix, in one snapshot.
-- p_segments: each point from the one before it, which folds every event once; right only if all points are. Else each from the
-- beginning. p_guarded: a fold that raises is a problem of its stream; unguarded it raises here. p_stream_ids: only these; null: all.
-- In Go generations only counts and last event ids are compared.
create or replace function rewind._verify_points(
  p_generation rewind.perspective_generations, p_stream_ids uuid[], p_segments boolean, p_guarded boolean
) returns setof rewind.stream_problem
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
  set enable_mergejoin = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
as $function$
begin
  return query execute format(
    $sql$
    with points as (
      select c.stream_id, false as is_snapshot, c.last_event_id as event_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid as until,
        c.model, c.events_applied, c.applied_version, c.first_event_at, c.last_event_at
      from %1$s c
      where $1 is null or c.stream_id = any ($1)
      union all
      select n.stream_id, true, n.event_id, n.event_id, n.model, n.events_applied, c.applied_version, null, null
      from %2$s n
      join %1$s c on c.stream_id = n.stream_id
      where n.version = $2 and ($1 is null or n.stream_id = any ($1))
    ),
    segments as (
      select p.*,
        case when $3 then lag(p.until) over w end as after,
        case when $3 then lag(p.model) over w end as start,
        case when $3 then coalesce(lag(p.events_applied) over w, 0) else 0 end as start_events
      from points p
      window w as (partition by p.stream_id order by p.until, p.is_snapshot desc)
    ),
    folds as (
      select g.*, f.state, f.last_event_id as fold_last_event_id, g.start_events + f.events as fold_events
      from segments g
      cross join lateral (
        select %3$s as state, max(w.event_id::text collate "C")::uuid as last_event_id, count(*) as events
        from (
          select v.stream_id, s.stream_key, s.tenant_id, v.event_id, v.event_type, v.payload, v.metadata
          from rewind.wal v
          cross join (select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = g.stream_id) s
          where v.stream_id = g.stream_id and v.event_id <= g.until and v.stream_version <= g.applied_version
            and v.event_id > coalesce(g.after, '00000000-0000-0000-0000-000000000000')
            and v.kind = 6 and ($4::text[] is null or v.event_type = any ($4))
          order by v.event_id
        ) w
      ) f
    )
    select r.stream_id, q.problem, q.expected, q.actual, r.applied_version
    from (
      select *, case when state ? 'rewind:error' then state else nullif(coalesce(state, start, 'null'), 'null') end as fold from folds
    ) r
    cross join lateral (
      select case when r.is_snapshot then 'snapshot' else 'model' end as problem,
        jsonb_build_object('event_id', r.event_id, 'events_applied', r.fold_events, 'model', r.fold) as expected,
        jsonb_build_object('event_id', r.event_id, 'events_applied', r.events_applied, 'model', r.model) as actual
      where r.is_snapshot
        and ((r.fold is distinct from r.model and $5) or r.fold_events <> r.events_applied
          or coalesce(r.fold_last_event_id, r.after) is distinct from r.event_id)
      union all
      select 'model', r.fold, r.model
      where not r.is_snapshot and $5 and r.fold is distinct from r.model
      union all
      select 'events_applied',
        jsonb_build_object('events_applied', r.fold_events, 'last_event_id', t.last_event_id, 'first_event_at', t.first_event_at,
          'last_event_at', t.last_event_at),
        jsonb_build_object('events_applied', r.events_applied, 'last_event_id', r.event_id, 'first_event_at', r.first_event_at,
          'last_event_at', r.last_event_at)
      from (
        select l.last_event_id, rewind.event_time(l.last_event_id) as last_event_at, (
            select rewind.event_time(v.event_id)
            from rewind.wal v
            where v.stream_id = r.stream_id and v.stream_version <= r.applied_version and v.kind = 6 and ($4::text[] is null or v.event_type = any ($4))
            order by v.event_id
            limit 1
          ) as first_event_at
        from (select coalesce(r.fold_last_event_id, r.after) as last_event_id) l
        offset 0
      ) t
      where not r.is_snapshot and (r.events_applied, r.event_id, r.first_event_at, r.last_event_at)
        is distinct from (r.fold_events, t.last_event_id, t.first_event_at, t.last_event_at)
    ) q
    $sql$,
    p_generation.model_table, format('rewind_gen.snapshots_%s', p_generation.generation_id),
    case when p_generation.apply is null then 'null::jsonb' else rewind._fold_call(p_generation, '$6', 'g.start') end)
  using p_stream_ids, p_generation.version, p_segments, p_generation.event_types, p_generation.apply is not null, p_guarded;
end
$function$;

comment on function rewind._verify_points(rewind.perspective_generations, uuid[], boolean, boolean) is
  'Compares models and snapshots with folds of the log.';
