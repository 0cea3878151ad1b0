-- Writes what a worker folded of a batch that _read_go_batch left locked in this transaction, and moves the position on.
-- The arrays of folded streams are parallel, those of failed ones and of snapshots too; of a failed stream no snapshot may be among
-- them. Returns the repairs that were put on record. Errors: RW020.
create or replace function rewind._write_go_batch(
  p_generation_id int,
  p_partition int,
  p_to_offset bigint,
  p_stream_ids uuid[],
  p_models jsonb[],
  p_first_event_ids uuid[],
  p_last_event_ids uuid[],
  p_applied_versions bigint[],
  p_events_applied bigint[],
  p_trigger_event_ids uuid[],
  p_restore_event_ids uuid[],
  p_events_folded bigint[],
  p_failed_stream_ids uuid[],
  p_errors text[],
  p_error_event_ids uuid[],
  p_failed_trigger_event_ids uuid[],
  p_snapshot_stream_ids uuid[],
  p_snapshot_event_ids uuid[],
  p_snapshot_models jsonb[],
  p_snapshot_applied_versions bigint[],
  p_snapshot_events_applied bigint[]
) returns jsonb
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_counts rewind.fold_counts;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._writable_generation(p_generation_id);
  v_counts := rewind._store_folds(
    v_generation, p_partition,
    row(p_stream_ids, p_models, p_first_event_ids, p_last_event_ids, p_applied_versions, p_events_applied,
      p_trigger_event_ids, p_restore_event_ids, p_events_folded, p_failed_stream_ids, p_errors, p_error_event_ids, p_failed_trigger_event_ids,
      p_snapshot_stream_ids, p_snapshot_event_ids, p_snapshot_models, p_snapshot_applied_versions, p_snapshot_events_applied)::rewind.folds,
    rewind._perspective_options(v_generation.perspective_name));
  perform rewind._advance_partition(p_generation_id, p_partition, p_to_offset, v_counts);
  return coalesce(v_counts.narrated, '[]');
end
$function$;

comment on function rewind._write_go_batch(
  int, int, bigint, uuid[], jsonb[], uuid[], uuid[], bigint[], bigint[], uuid[], uuid[], bigint[], uuid[], text[], uuid[], uuid[],
  uuid[], uuid[], jsonb[], bigint[], bigint[]
) is 'Writes what a worker folded of a batch.';
