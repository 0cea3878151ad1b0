-- Generates the statements of the live path that name a generation's table and fold, as functions in rewind_gen, so that a session plans
-- them once and not with every batch (which took a third of the time of small batches):
--   lock_batch_<id>   locks a batch's cursors in stream_id order and returns the streams that are late in it: stream_version >
--                     applied_version and event_id < last_event_id, judged on the rows as locked. Streams without a cursor have
--                     nothing to be late for
--   fold_batch_<id>   folds a batch of a SQL perspective, set-based: in order from the models, late and shallow from their restore
--                     points; what is too deep is flagged. Brings back what is to be written
--   read_batch_<id>   brings the events of a batch of a Go perspective, each stream's model on its first row
--   build_batch_<id>  folds streams that have no cursor whole, or brings their events: $1 generation $2 streams $3 options, then $4 whether
--                     there are skips $5 guarded; in Go $4 from $5 to $6 head. Streams that are long enough for snapshots before their
--                     ends are folded over a window, which gives the models in between; the others by the cheaper plain aggregate
-- The plans must not depend on statistics: what is per stream is one lateral probe per stream, and only hash joins are between what was
-- read. Parameters of all: $1 generation $2 partition $3 from $4 to; then $5 late streams $6 options; $7 whether there are skips, or the head;
-- $8 guarded (see _generate_fold).
create or replace function rewind._generate_batch(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_statement text;
  v_candidates constant text := 'and v.kind = 6 and (($1).event_types is null or v.event_type = any (($1).event_types))';
  v_function constant text := $sql$
    create or replace function rewind_gen.%s(%s) returns setof %s
      language plpgsql volatile parallel unsafe security invoker
      set search_path = pg_catalog, pg_temp
      set plan_cache_mode = force_generic_plan
      set enable_seqscan = off
      set enable_nestloop = off
      set enable_mergejoin = off
      set jit = off
      %s
    as %L
  $sql$;
  -- What is per stream comes along (stream_id, event_id), in chronology, and not along versions with all that is before a restore point.
  v_by_stream constant text := 'set enable_bitmapscan = off set enable_sort = off';
  -- Brings what was kept of a fold into the parallel arrays of rewind.folds.
  v_collect constant text := $sql$
    select
      array_agg(k.stream_id) filter (where is_last and not failed) as stream_ids,
      array_agg(nullif(k.state, 'null')) filter (where is_last and not failed) as models,
      array_agg(k.first_event_id) filter (where is_last and not failed) as first_event_ids,
      array_agg(k.event_id) filter (where is_last and not failed) as last_event_ids,
      array_agg(k.to_version) filter (where is_last and not failed) as applied_versions,
      array_agg(k.events_applied) filter (where is_last and not failed) as events_applied,
      array_agg(k.trigger_event_id) filter (where is_last and not failed) as trigger_event_ids,
      array_agg(k.restore_event_id) filter (where is_last and not failed) as restore_event_ids,
      array_agg(k.total) filter (where is_last and not failed) as events_folded,
      array_agg(k.stream_id) filter (where is_last and failed) as failed_stream_ids,
      array_agg(k.state -> 'rewind:error' ->> 'message') filter (where is_last and failed) as errors,
      array_agg((k.state -> 'rewind:error' ->> 'event_id')::uuid) filter (where is_last and failed) as error_event_ids,
      array_agg(k.trigger_event_id) filter (where is_last and failed) as failed_trigger_event_ids,
      array_agg(k.stream_id) filter (where snapshot_due) as snapshot_stream_ids,
      array_agg(k.event_id) filter (where snapshot_due) as snapshot_event_ids,
      array_agg(nullif(k.state, 'null')) filter (where snapshot_due) as snapshot_models,
      array_agg(k.to_version) filter (where snapshot_due) as snapshot_applied_versions,
      array_agg(k.events_applied) filter (where snapshot_due) as snapshot_events_applied
    from kept k
    where (is_last or snapshot_due)
  $sql$;
begin
  select * into strict v_generation from rewind.perspective_generations where generation_id = p_generation_id;
  v_statement := format(
    $sql$
    with batch as materialized (
      select w.stream_id, w.event_id, w.stream_version
      from rewind.wal w
      where w.tree_id = ($1).tree_id and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
        and w.kind = 6 and (($1).event_types is null or w.event_type = any (($1).event_types))
    ),
    cursors as materialized (
      select k.*
      from (select distinct stream_id from batch order by stream_id offset 0) s
      cross join lateral (
        select c.stream_id, c.status, c.applied_version, c.last_event_id, c.events_applied
        from %s c where c.stream_id = s.stream_id and c.generation_id = ($1).generation_id
        for update
      ) k
    )
    select
      b.stream_id,
      min(b.event_id::text collate "C") filter (where b.event_id < k.last_event_id)::uuid,
      max(b.stream_version),
      k.events_applied,
      count(*),
      k.status & 44 <> 0
    from batch b
    join cursors k on k.stream_id = b.stream_id
    where b.stream_version > k.applied_version
    group by b.stream_id, k.status, k.events_applied
    having bool_or(b.event_id < k.last_event_id)
    $sql$,
    v_generation.model_table);
  execute format(v_function, 'lock_batch_' || p_generation_id, 'rewind.perspective_generations, int, bigint, bigint', 'rewind.late_stream', '',
    'begin return query ' || v_statement || '; end');

  if v_generation.apply is not null then
    v_statement := format(
      $sql$
      with %s,
      states as (
        select w.stream_id, w.event_id, w.trigger_event_id, w.restore_event_id, w.to_version, w.total, w.events_before,
          coalesce(%s, w.model, 'null') as state,  -- no state: all events so far are skipped
          row_number() over chronology as place,
          first_value(w.event_id) over chronology as first_event_id
        from events w
        window chronology as (partition by w.stream_id order by w.event_id rows unbounded preceding)
      ),
      kept as (
        select s.*, s.place = s.total as is_last, s.events_before + s.place as events_applied, s.state ? 'rewind:error' as failed,
          ($6 ->> 'snapshots_enabled')::boolean and rewind._is_snapshot_due(s.place, s.total, s.events_before,
            s.trigger_event_id is not null, o.every, o.spacing) as snapshot_due
        from states s
        cross join (
          select ($6 ->> 'snapshot_every_n_events')::bigint as every, ($6 ->> 'rewind_snapshot_interval_events')::bigint as spacing offset 0
        ) o
      )
      %s
        and (select count(*) from flagged) >= 0
      $sql$,
      rewind._batch_events(v_generation), rewind._fold_call(v_generation, '$8', 'w.model', p_over => 'chronology', p_guard => '$7'), v_collect);
    execute format(v_function, 'fold_batch_' || p_generation_id,
      'rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb, boolean, boolean', 'rewind.folds', v_by_stream,
      'begin return query ' || v_statement || '; end');
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
      rewind._fold_call(v_generation, '$5', 'null', p_over => 'chronology', p_guard => '$4'), v_candidates, v_collect);
    execute format(v_function, 'build_batch_' || p_generation_id,
      'rewind.perspective_generations, uuid[], jsonb, boolean, boolean', 'rewind.folds', v_by_stream || ' set work_mem = ''64MB''',
      'begin return query ' || v_statement || '; end');
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
      select $4, $5, $6, n.stream_id, n.stream_key, n.tenant_id, null::jsonb, null::uuid, null::uuid, 0::bigint, n.stream_version, n.event_id,
        n.event_type, n.payload, n.metadata, rewind._is_skipped(($1).perspective_name, n.stream_id, n.event_id, false),
        ($3 ->> 'snapshots_enabled')::boolean and rewind._is_snapshot_due(n.place, n.total, 0, false,
          ($3 ->> 'snapshot_every_n_events')::bigint, ($3 ->> 'rewind_snapshot_interval_events')::bigint)
      from numbered n
      order by n.stream_id, n.event_id
      $sql$,
      v_candidates);
    execute format(v_function, 'build_batch_' || p_generation_id,
      'rewind.perspective_generations, uuid[], jsonb, bigint, bigint, bigint', 'rewind.batch_event', v_by_stream || ' set work_mem = ''64MB''',
      'begin return query ' || v_statement || '; end');
    v_statement := format(
      $sql$
      with %s,
      numbered as (
        select e.*, row_number() over (partition by e.stream_id order by e.event_id) as place from events e
      )
      select $3, $4, $7, n.stream_id, n.stream_key, n.tenant_id, case when n.place = 1 then n.model end, n.trigger_event_id, n.restore_event_id,
        n.events_before, n.stream_version, n.event_id, n.event_type, n.payload, n.metadata,
        rewind._is_skipped(($1).perspective_name, n.stream_id, n.event_id, false),
        ($6 ->> 'snapshots_enabled')::boolean and rewind._is_snapshot_due(n.place, n.total, n.events_before, n.trigger_event_id is not null,
          ($6 ->> 'snapshot_every_n_events')::bigint, ($6 ->> 'rewind_snapshot_interval_events')::bigint)
      from numbered n
      where (select count(*) from flagged) >= 0
      order by n.stream_id, n.event_id
      $sql$,
      rewind._batch_events(v_generation));
    execute format(v_function, 'read_batch_' || p_generation_id,
      'rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb, bigint', 'rewind.batch_event', v_by_stream,
      'begin return query ' || v_statement || '; end');
  end if;
end
$function$;

comment on function rewind._generate_batch(int) is 'Generates the statements of a generation''s live path in rewind_gen.';
