-- The end of a generated statement that folds: brings what it kept (CTE kept) into the parallel arrays of rewind.folds.
create or replace function rewind._collect_folds() returns text
  language sql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
return $sql$
    select
      array_agg(k.stream_id) filter (where folded) as stream_ids,
      array_agg(nullif(k.state, 'null')) filter (where folded) as models,
      array_agg(k.first_event_id) filter (where folded) as first_event_ids,
      array_agg(k.event_id) filter (where folded) as last_event_ids,
      array_agg(k.to_version) filter (where folded) as applied_versions,
      array_agg(k.events_applied) filter (where folded) as events_applied,
      array_agg(k.trigger_event_id) filter (where folded) as trigger_event_ids,
      array_agg(k.restore_event_id) filter (where folded) as restore_event_ids,
      array_agg(k.total) filter (where folded) as events_folded,
      array_agg(k.stream_id) filter (where broken) as failed_stream_ids,
      array_agg(k.state -> 'rewind:error' ->> 'message') filter (where broken) as errors,
      array_agg((k.state -> 'rewind:error' ->> 'event_id')::uuid) filter (where broken) as error_event_ids,
      array_agg(k.trigger_event_id) filter (where broken) as failed_trigger_event_ids,
      array_agg(k.stream_id) filter (where snapshot_due) as snapshot_stream_ids,
      array_agg(k.event_id) filter (where snapshot_due) as snapshot_event_ids,
      array_agg(nullif(k.state, 'null')) filter (where snapshot_due) as snapshot_models,
      array_agg(k.to_version) filter (where snapshot_due) as snapshot_applied_versions,
      array_agg(k.events_applied) filter (where snapshot_due) as snapshot_events_applied
    from (
      select k.*, k.is_last and not k.failed as folded, k.is_last and k.failed as broken
      from kept k
      where k.is_last or k.snapshot_due
      offset 0  -- what tells them apart is not looked at again for each array
    ) k
$sql$;

comment on function rewind._collect_folds() is 'Text that collects what a generated statement folded.';
