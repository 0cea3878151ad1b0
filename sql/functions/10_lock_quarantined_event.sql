-- Locks the partition of the stream to which an event in quarantine belongs, as appends do first, then the event, and returns it.
-- Errors: 22023, 40001.
create or replace function rewind._lock_quarantined_event(p_quarantine_id bigint) returns rewind.quarantined_events
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_event rewind.quarantined_events;
begin
  perform rewind._lock_streams(t, q.tenant_id, array[q.stream_key])
  from rewind.quarantined_events q
  join rewind.trees t on t.tree_id = q.tree_id
  where q.quarantine_id = p_quarantine_id;
  select * into v_event from rewind.quarantined_events q where q.quarantine_id = p_quarantine_id for update;
  if not found then
    raise exception 'no event % in quarantine', p_quarantine_id using
      errcode = '22023',
      detail = jsonb_build_object('quarantine_id', p_quarantine_id)::text,
      hint = 'those there are: select quarantine_id from rewind.quarantined_events';
  end if;
  return v_event;
end
$function$;

comment on function rewind._lock_quarantined_event(bigint) is 'Locks and returns an event in quarantine.';
