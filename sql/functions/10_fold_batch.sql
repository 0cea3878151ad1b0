-- Folds the streams of a batch whose cursors owe nothing and are not late, set-based, from their models, and writes the result.
-- The caller holds the partition and has locked the batch's cursors.
create or replace function rewind._fold_batch(
  p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_to bigint, p_options jsonb
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
    with batch as materialized (
      select w.stream_id, w.stream_version, w.event_id, w.event_type, w.payload, w.metadata
      from rewind.wal w
      where w.tree_id = $1 and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
        and w.kind = 6 and ($5::text[] is null or w.event_type = any ($5))
    ),
    starts as materialized (
      select b.stream_id, s.stream_key, s.tenant_id, k.model, coalesce(k.applied_version, 0) as applied_version,
        coalesce(k.events_applied, 0) as events_applied
      from (select distinct stream_id from batch) b
      cross join lateral (
        select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = b.stream_id offset 0
      ) s
      left join lateral (
        select c.model, c.applied_version, c.events_applied, c.status
        from %1$s c where c.stream_id = b.stream_id and c.generation_id = $6 offset 0
      ) k on true
      where coalesce(k.status, 0) & 44 = 0
    ),
    folds as (
      select
        w.stream_id,
        %2$s as state,
        min(w.event_id::text collate "C")::uuid as first_event_id,
        max(w.event_id::text collate "C")::uuid as last_event_id,
        max(w.stream_version) as applied_version,
        s.events_applied,
        count(*) as events_new
      from batch w
      join starts s on s.stream_id = w.stream_id
      where w.stream_version > s.applied_version
      group by w.stream_id, s.events_applied
    )
    select
      array_agg(f.stream_id) filter (where ok) as stream_ids,
      array_agg(nullif(f.state, 'null')) filter (where ok) as models,
      array_agg(f.first_event_id) filter (where ok) as first_event_ids,
      array_agg(f.last_event_id) filter (where ok) as last_event_ids,
      array_agg(f.applied_version) filter (where ok) as applied_versions,
      array_agg(f.events_applied + f.events_new) filter (where ok) as events_applied,
      array_agg(f.events_new) filter (where ok) as events_new,
      null::uuid[] as trigger_event_ids,
      coalesce(sum(f.events_new) filter (where ok), 0)::bigint as events,
      array_agg(f.stream_id) filter (where not ok) as failed_stream_ids,
      array_agg(f.state -> 'rewind:error' ->> 'message') filter (where not ok) as errors,
      array_agg((f.state -> 'rewind:error' ->> 'event_id')::uuid) filter (where not ok) as error_event_ids,
      null::uuid[] as failed_trigger_event_ids
    from (
      select r.*, not state ? 'rewind:error' as ok
      from (
        select g.stream_id, g.first_event_id, g.last_event_id, g.applied_version, g.events_applied, g.events_new,
          coalesce(g.state, s.model, 'null') as state  -- no state: every event of it is skipped
        from folds g
        join starts s on s.stream_id = g.stream_id
      ) r
    ) f
    $sql$,
    p_generation.model_table, rewind._fold_call(p_generation, 's.model'))
  into v_folds
  using p_generation.tree_id, p_partition, p_from, p_to, p_generation.event_types, p_generation.generation_id;
  return rewind._store_folds(p_generation, p_partition, v_folds, p_options);
end
$function$;

comment on function rewind._fold_batch(rewind.perspective_generations, int, bigint, bigint, jsonb) is
  'Folds the in-order streams of a batch, set-based.';
