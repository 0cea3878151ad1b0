-- Generates the statement by which a generation is built, build_batch_<id>: it folds streams that have no cursor whole, or, of a perspective in
-- Go, brings their events. Parameters: $1 generation $2 streams $3 options, then $4 whether there are skips $5 guarded; in Go $4 from $5 to
-- $6 head. Streams that are long enough for snapshots before their ends are folded over a window, which gives the models in between; the
-- others by the cheaper plain aggregate.
create or replace function rewind._generate_build(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_statement text;
  v_candidates constant text := 'and v.kind = 6 and (($1).event_types is null or v.event_type = any (($1).event_types))';
  v_settings constant text := 'set enable_bitmapscan = off set enable_sort = off set work_mem = ''64MB''';
begin
  select * into strict v_generation from rewind.perspective_generations where generation_id = p_generation_id;
  if v_generation.apply is not null then
    v_statement := format(
      $sql$
      with chosen as materialized (
        select i.stream_id, s.stream_key, s.tenant_id,
          ($3 ->> 'snapshots_enabled')::boolean and h.stream_version > o.every as has_ladder, o.every
        from unnest($2) i (stream_id)
        cross join (select ($3 ->> 'snapshot_every_n_events')::bigint as every offset 0) o
        cross join lateral (
          select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = i.stream_id offset 0
        ) s
        cross join lateral (
          select l.stream_version from rewind.wal l where l.stream_id = i.stream_id order by l.stream_version desc limit 1
        ) h
      ),
      plain as (
        select c.stream_id, coalesce(f.state, 'null') as state, f.total, f.to_version, c.every, a.event_id as first_event_id, z.event_id
        from chosen c
        cross join lateral (
          select %1$s as state, count(*) as total, max(w.stream_version) as to_version
          from (
            select v.stream_id, c.stream_key, c.tenant_id, v.stream_version, v.event_id, v.event_type, v.payload, v.metadata
            from rewind.wal v
            where v.stream_id = c.stream_id %3$s
            order by v.event_id
          ) w
        ) f
        cross join lateral (select v.event_id from rewind.wal v where v.stream_id = c.stream_id %3$s order by v.event_id limit 1) a
        cross join lateral (select v.event_id from rewind.wal v where v.stream_id = c.stream_id %3$s order by v.event_id desc limit 1) z
        where not c.has_ladder
      ),
      steps as (
        select w.stream_id, coalesce(%2$s, 'null') as state, row_number() over chronology as place, count(*) over whole as total,
          max(w.stream_version) over whole as to_version, w.every, first_value(w.event_id) over chronology as first_event_id, w.event_id
        from (
          select c.stream_id, c.stream_key, c.tenant_id, c.every, e.*
          from chosen c
          cross join lateral (
            select v.stream_version, v.event_id, v.event_type, v.payload, v.metadata
            from rewind.wal v
            where v.stream_id = c.stream_id %3$s
            offset 0
          ) e
          where c.has_ladder
        ) w
        window chronology as (partition by w.stream_id order by w.event_id rows unbounded preceding), whole as (partition by w.stream_id)
      ),
      kept as (
        select p.stream_id, p.state, p.first_event_id, p.event_id, p.to_version, p.total as events_applied, null::uuid as trigger_event_id,
          null::uuid as restore_event_id, p.total, true as is_last, p.state ? 'rewind:error' as failed,
          ($3 ->> 'snapshots_enabled')::boolean and p.total >= p.every as snapshot_due
        from plain p
        union all
        select s.stream_id, s.state, s.first_event_id, s.event_id, s.to_version, s.place, null, null, s.total, s.place = s.total,
          s.state ? 'rewind:error', rewind._is_snapshot_due(s.place, s.total, 0, false, s.every, s.every)
        from steps s
      )
      %4$s
      $sql$,
      rewind._fold_call(v_generation, '$5', 'null', p_guard => '$4', p_sorted => true),
      rewind._fold_call(v_generation, '$5', 'null', p_over => 'chronology', p_guard => '$4'), v_candidates, rewind._collect_folds());
    perform rewind._define_statement('build_batch_' || p_generation_id,
      'rewind.perspective_generations, uuid[], jsonb, boolean, boolean', 'rewind.folds', v_settings, v_statement);
  else
    v_statement := format(
      $sql$
      with numbered as (
        select i.stream_id, s.stream_key, s.tenant_id, e.*, row_number() over (partition by i.stream_id order by e.event_id) as place,
          count(*) over (partition by i.stream_id) as total
        from unnest($2) i (stream_id)
        cross join lateral (
          select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = i.stream_id offset 0
        ) s
        cross join lateral (
          select v.stream_version, v.event_id, v.event_type, v.payload, v.metadata
          from rewind.wal v
          where v.stream_id = i.stream_id %s
          offset 0
        ) e
      )
      select $4, $5, $6, n.stream_id, case when n.place = 1 then n.stream_key end, case when n.place = 1 then n.tenant_id end,
        null::jsonb, null::uuid, null::uuid, 0::bigint, n.stream_version, n.event_id, n.event_type, n.payload, n.metadata,
        (select rewind._has_skips(($1).perspective_name)) and rewind._is_skipped(($1).perspective_name, n.stream_id, n.event_id, false),
        ($3 ->> 'snapshots_enabled')::boolean and rewind._is_snapshot_due(n.place, n.total, 0, false,
          ($3 ->> 'snapshot_every_n_events')::bigint, ($3 ->> 'rewind_snapshot_interval_events')::bigint)
      from numbered n
      order by n.stream_id, n.event_id
      $sql$,
      v_candidates);
    perform rewind._define_statement('build_batch_' || p_generation_id,
      'rewind.perspective_generations, uuid[], jsonb, bigint, bigint, bigint', 'rewind.batch_event', v_settings, v_statement);
  end if;
end
$function$;

comment on function rewind._generate_build(int) is 'Generates the statement by which a generation is built in rewind_gen.';
