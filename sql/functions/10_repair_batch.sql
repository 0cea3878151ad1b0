-- Repairs shallow late streams of a batch inside it: each is folded again from its nearest valid snapshot, set-based, and written.
-- Whatever can't be repaired so is flagged for the rewind path: deeper than inline_rewind_events, owing before, or counts that don't
-- add up (a damaged cursor or snapshot).
-- The caller holds the partition and has locked the batch's cursors.
create or replace function rewind._repair_batch(
  p_generation rewind.perspective_generations,
  p_partition int,
  p_late rewind.late_stream[],
  p_options jsonb
) returns rewind.fold_counts
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_nestloop = off
  set enable_mergejoin = off
  set jit = off
as $function$
declare
  v_folds rewind.folds;
begin
  execute format(
    $sql$
    with late as materialized (
      select * from unnest($1) where not owing and $2 > 0
    ),
    folds as (
      select
        r.stream_id,
        %s as state,
        min(w.event_id::text collate "C")::uuid as first_event_id,
        max(w.event_id::text collate "C")::uuid as last_event_id,
        count(*) as events
      from (select array_agg(stream_id) as ids, array_agg(trigger_event_id) as triggers, array_agg(to_version) as versions from late) l
      cross join lateral rewind._plan_repairs($3, l.ids, l.triggers, l.versions, $2) r
      cross join lateral (
        select v.stream_id, v.event_id, v.event_type, v.payload, v.metadata
        from rewind.wal v
        where v.stream_id = r.stream_id and v.event_id > coalesce(r.snapshot_event_id, '00000000-0000-0000-0000-000000000000')
          and v.stream_version <= r.to_version
          and v.kind = 6 and ($4::text[] is null or v.event_type = any ($4))
        offset 0
      ) w
      cross join lateral (
        select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = r.stream_id offset 0
      ) s
      join late i on i.stream_id = r.stream_id
      where r.depth <= $2
      group by r.stream_id, r.events_applied, i.events_applied, i.events_new
      having r.events_applied + count(*) = i.events_applied + i.events_new
    )
    select
      array_agg(l.stream_id) filter (where ok) as stream_ids,
      array_agg(nullif(f.state, 'null')) filter (where ok) as models,
      array_agg(f.first_event_id) filter (where ok) as first_event_ids,
      array_agg(f.last_event_id) filter (where ok) as last_event_ids,
      array_agg(l.to_version) filter (where ok) as applied_versions,
      array_agg(l.events_applied + l.events_new) filter (where ok) as events_applied,
      array_agg(l.events_new) filter (where ok) as events_new,
      array_agg(l.trigger_event_id) filter (where ok) as trigger_event_ids,
      coalesce(sum(f.events) filter (where ok), 0)::bigint as events,
      array_agg(l.stream_id) filter (where not ok) as failed_stream_ids,
      array_agg(f.state -> 'rewind:error' ->> 'message') filter (where not ok) as errors,
      array_agg((f.state -> 'rewind:error' ->> 'event_id')::uuid) filter (where not ok) as error_event_ids,
      array_agg(l.trigger_event_id) filter (where not ok) as failed_trigger_event_ids
    from (select g.*, not g.state ? 'rewind:error' as ok from folds g) f
    join late l on l.stream_id = f.stream_id
    $sql$,
    rewind._fold_call(p_generation, 'r.model'))
  into v_folds
  using p_late,
    case when (p_options ->> 'rewind_enabled')::boolean then (p_options ->> 'inline_rewind_events')::int else 0 end,
    p_generation, p_generation.event_types;

  perform rewind._flag_cursors(p_generation.generation_id, array_agg(l.stream_id), array_agg(l.trigger_event_id))
  from unnest(p_late) l
  where l.stream_id <> all (coalesce(v_folds.stream_ids || v_folds.failed_stream_ids, '{}'))
  having count(*) > 0;
  return rewind._store_folds(p_generation, p_partition, v_folds, p_options);
end
$function$;

comment on function rewind._repair_batch(rewind.perspective_generations, int, rewind.late_stream[], jsonb) is
  'Repairs the shallow late streams of a batch and flags the others.';
