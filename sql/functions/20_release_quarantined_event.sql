-- Appends an event from quarantine to its stream, past the guards of the tree, also one that was dropped. Idempotent: released again, it
-- comes back with its place and was_new false. Locks the stream's partition, then the event in quarantine, until the transaction ends.
-- Errors: 22023 no such event, 55000 it was released, and trimmed since; RW002, 40001.
create or replace function rewind.release_quarantined_event(p_quarantine_id bigint, p_options jsonb default '{}')
  returns setof rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_event rewind.quarantined_events;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  v_event := rewind._lock_quarantined_event(p_quarantine_id);
  if v_event.state = 'released' and not exists (select from rewind._stored_event(v_event.stream_id, v_event.event_id)) then
    raise exception 'event % of the quarantine was released, and trimmed since', p_quarantine_id using
      errcode = '55000', detail = jsonb_build_object('quarantine_id', p_quarantine_id, 'event_id', v_event.event_id)::text;
  end if;
  return query
  select a.*
  from rewind.trees t
  cross join lateral rewind._append(t, v_event.tenant_id, array[v_event.stream_key], array[1], array[v_event.event_id], null,
    array[v_event.event_type], array[v_event.payload], array[v_event.metadata], null, false) a
  where t.tree_id = v_event.tree_id;
  update rewind.quarantined_events q
  set state = 'released',
      decided_at = rewind._now(),
      drop_reason = null
  where q.quarantine_id = p_quarantine_id and q.state <> 'released';
end
$function$;

comment on function rewind.release_quarantined_event(bigint, jsonb) is 'Appends an event from quarantine to its stream, and returns its place.';
