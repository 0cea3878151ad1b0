-- Parks streams whose repairs in Go have ended as many workers as there are attempts. Their stream locks, left to expire, go.
-- Locks: stream lock rows, then the cursors, passing by those that are locked.
create or replace function rewind._park_deadly(p_generation_ids int[], p_stream_ids uuid[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_lock rewind.perspective_stream_locks;
begin
  for v_lock in
    select l.*
    from rewind.perspective_stream_locks l
    join unnest(p_generation_ids, p_stream_ids) a (generation_id, stream_id) on l.stream_id = a.stream_id and l.generation_id = a.generation_id
    where l.expires_at <= rewind._now()
    for update of l skip locked
  loop
    perform from rewind.perspective_cursors c
    where c.stream_id = v_lock.stream_id and c.generation_id = v_lock.generation_id
    for update skip locked;
    continue when not found;
    update rewind.perspective_cursors c
    set status = (c.status | 4) & ~2,
        attempts = v_lock.deaths + 1,
        retry_at = null,
        error = format('the fold ended the process of its worker %s times', v_lock.deaths + 1),
        error_event_id = null
    where c.stream_id = v_lock.stream_id and c.generation_id = v_lock.generation_id and c.status & 44 <> 0;
    delete from rewind.perspective_stream_locks l where l.stream_id = v_lock.stream_id and l.generation_id = v_lock.generation_id;
  end loop;
end
$function$;

comment on function rewind._park_deadly(int[], uuid[]) is 'Parks streams whose repairs in Go end their workers.';
