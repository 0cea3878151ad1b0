-- Decides that an event in quarantine stays out of the log, on record: it is kept, with the reason, and stays out when it is sent again.
-- Dropped again, nothing changes. Locks the stream's partition, then the event in quarantine, until the transaction ends. Errors: RW020,
-- 22023 no such event, no reason; 55000 it was released, or is in the log; 40001.
create or replace function rewind.drop_quarantined_event(p_quarantine_id bigint, p_reason text, p_options jsonb default '{}') returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_event rewind.quarantined_events;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  if coalesce(p_reason, '') = '' then
    raise exception 'a drop needs a reason' using errcode = '22023';
  end if;
  v_event := rewind._lock_quarantined_event(p_quarantine_id);
  if v_event.state = 'released' or exists (select from rewind._stored_event(v_event.stream_id, v_event.event_id)) then
    raise exception 'event % of the quarantine is in the log: it was released, or sent again when its time had come', p_quarantine_id using
      errcode = '55000',
      detail = jsonb_build_object('quarantine_id', p_quarantine_id, 'event_id', v_event.event_id)::text,
      hint = 'correct it by appending another event';
  end if;
  update rewind.quarantined_events q
  set state = 'dropped',
      decided_at = rewind._now(),
      drop_reason = p_reason
  where q.quarantine_id = p_quarantine_id and q.state = 'held';
  -- An append whose snapshot is older, and doesn't see that, locks this row.
  update rewind.tree_partitions p
  set floor_offset = p.floor_offset
  from rewind.trees t
  where t.tree_id = v_event.tree_id and p.tree_id = t.tree_id
    and p.wal_partition = rewind._stream_partition(v_event.stream_id, t.first_partition, t.partitions);
end
$function$;

comment on function rewind.drop_quarantined_event(bigint, text, jsonb) is 'Decides that an event in quarantine stays out of the log.';
