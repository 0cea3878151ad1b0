-- The end of a generated statement that folds: brings what it kept (CTE kept) into the parallel arrays of rewind.folds.
create or replace function rewind._collect_folds() returns text
  language sql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
return $sql$
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

comment on function rewind._collect_folds() is 'Text that collects what a generated statement folded.';
