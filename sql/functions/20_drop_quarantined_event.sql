-- Decides that an event in quarantine stays out of the log, on record: it is kept, with the reason, so that it isn't put there again when
-- it is sent again. Dropped again, nothing changes. Locks the event in quarantine. Errors: 22023 no such event, no reason; 55000 it was
-- released.
create or replace function rewind.drop_quarantined_event(p_quarantine_id bigint, p_reason text, p_options jsonb default '{}') returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_event rewind.quarantined_events;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  if coalesce(p_reason, '') = '' then
    raise exception 'a drop needs a reason' using errcode = '22023';
  end if;
  v_event := rewind._lock_quarantined_event(p_quarantine_id);
  if v_event.state = 'released' then
    raise exception 'event % was released from quarantine: it is in the log', p_quarantine_id using
      errcode = '55000',
      detail = jsonb_build_object('quarantine_id', p_quarantine_id, 'event_id', v_event.event_id)::text,
      hint = 'correct it by appending another event';
  end if;
  update rewind.quarantined_events q
  set state = 'dropped',
      decided_at = rewind._now(),
      drop_reason = p_reason
  where q.quarantine_id = p_quarantine_id and q.state = 'held';
end
$function$;

comment on function rewind.drop_quarantined_event(bigint, text, jsonb) is 'Decides that an event in quarantine stays out of the log.';
