-- Folds a batch of a SQL perspective, set-based: in order from the models, late and shallow from their restore points; what is too
-- deep is flagged. Brings back what is to be written. The caller holds the partition and has locked the batch's cursors.
create or replace function rewind._fold_batch(
  p_generation rewind.perspective_generations,
  p_partition int,
  p_from bigint,
  p_to bigint,
  p_late rewind.late_stream[],
  p_options jsonb
) returns rewind.folds
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
    where (is_last or snapshot_due) and (select count(*) from flagged) >= 0
    $sql$,
    rewind._batch_events(p_generation), rewind._fold_call(p_generation, 'w.model', p_over => 'chronology'))
  into v_folds
  using p_generation, p_partition, p_from, p_to, p_late, p_options;
  return v_folds;
end
$function$;

comment on function rewind._fold_batch(rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb) is
  'Folds a batch of a SQL perspective, set-based.';
