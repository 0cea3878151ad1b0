-- Writes what a batch folded: cursors with models (one row each), snapshots, failures. For repaired late streams it first drops the
-- snapshots at or after the trigger. The caller holds the partition and the cursors.
create or replace function rewind._store_folds(
  p_generation rewind.perspective_generations, p_partition int, p_folds rewind.folds, p_options jsonb
) returns rewind.fold_counts
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_counts rewind.fold_counts;
begin
  if cardinality(array_remove(p_folds.trigger_event_ids, null)) > 0 then
    if (p_options ->> 'narrate_inline_rewinds')::boolean then
      v_counts.narrated := rewind._record_repairs(p_generation, p_folds);
    end if;
    delete from rewind.perspective_snapshots n
    using unnest(p_folds.stream_ids, p_folds.trigger_event_ids) l (stream_id, trigger_event_id)
    where n.generation_id = p_generation.generation_id and n.stream_id = l.stream_id and n.event_id >= l.trigger_event_id;
  end if;

  insert into rewind.perspective_cursors as c (
    generation_id, stream_id, wal_partition, status, applied_version, events_applied, last_event_id, model, first_event_at, last_event_at
  )
  select
    p_generation.generation_id, f.stream_id, p_partition, 2, f.applied_version, f.events_applied, f.last_event_id, f.model,
    rewind.event_time(f.first_event_id), rewind.event_time(f.last_event_id)
  from unnest(p_folds.stream_ids, p_folds.models, p_folds.first_event_ids, p_folds.last_event_ids, p_folds.applied_versions,
    p_folds.events_applied) f (stream_id, model, first_event_id, last_event_id, applied_version, events_applied)
  on conflict (stream_id, generation_id) do update
  set wal_partition = excluded.wal_partition,
      status = 2,
      applied_version = excluded.applied_version,
      events_applied = excluded.events_applied,
      -- Only where order doesn't matter is what was folded last not the newest.
      last_event_id = case when (p_options ->> 'order_insensitive')::boolean then greatest(c.last_event_id, excluded.last_event_id)
        else excluded.last_event_id end,
      model = excluded.model,
      first_event_at = least(c.first_event_at, excluded.first_event_at),
      last_event_at = case when (p_options ->> 'order_insensitive')::boolean then greatest(c.last_event_at, excluded.last_event_at)
        else excluded.last_event_at end;

  if p_folds.snapshot_stream_ids is not null then
    insert into rewind.perspective_snapshots (
      generation_id, stream_id, event_id, applied_version, events_applied, model, version, reason
    )
    select
      p_generation.generation_id, s.stream_id, s.event_id, s.applied_version, s.events_applied, s.model, p_generation.version, 'live'
    from unnest(p_folds.snapshot_stream_ids, p_folds.snapshot_event_ids, p_folds.snapshot_models, p_folds.snapshot_applied_versions,
      p_folds.snapshot_events_applied) s (stream_id, event_id, model, applied_version, events_applied)
    where s.stream_id <> all (coalesce(p_folds.failed_stream_ids, '{}'))  -- a failed stream is left as it was
    on conflict (stream_id, generation_id, event_id) do nothing;
    -- What was folded from the beginning left a ladder behind already.
    perform rewind._prune_snapshots(p_generation.generation_id, s.stream_id, p_options)
    from unnest(p_folds.snapshot_stream_ids) s (stream_id)
    left join unnest(p_folds.stream_ids, p_folds.trigger_event_ids, p_folds.events_applied, p_folds.events_folded)
      f (stream_id, trigger_event_id, events_applied, events_folded) on f.stream_id = s.stream_id
    group by s.stream_id, f.trigger_event_id, f.events_applied, f.events_folded
    having f.trigger_event_id is not null or f.events_applied <> f.events_folded or count(*) > (p_options ->> 'max_snapshots_per_stream')::int;
  end if;

  if p_folds.failed_stream_ids is not null then
    perform rewind._fail_cursors(p_generation.generation_id, p_partition, p_folds.failed_stream_ids, p_folds.errors,
      p_folds.error_event_ids, p_folds.failed_trigger_event_ids, p_options);
  end if;
  v_counts.streams := coalesce(cardinality(p_folds.stream_ids), 0);
  v_counts.events := coalesce((select sum(n) from unnest(p_folds.events_folded) n), 0);
  v_counts.failed := coalesce(cardinality(p_folds.failed_stream_ids), 0);
  select count(*), count(f.restore_event_id) into v_counts.repaired, v_counts.restored
  from unnest(p_folds.trigger_event_ids, p_folds.restore_event_ids) f (trigger_event_id, restore_event_id)
  where f.trigger_event_id is not null;
  return v_counts;
end
$function$;

comment on function rewind._store_folds(rewind.perspective_generations, int, rewind.folds, jsonb) is
  'Writes the cursors, models, snapshots and failures of a batch.';
