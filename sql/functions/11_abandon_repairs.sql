-- Counts an attempt for repairs in Go whose workers neither ended them nor gave them back, as where the fold ends the process: their streams
-- are tried again after a backoff, whatever they owe, and parked once the attempts are used up. Their stream locks, which have expired, go.
-- Locks: stream lock rows, then the cursors, passing by those that are locked.
create or replace function rewind._abandon_repairs(p_generation_ids int[], p_stream_ids uuid[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_lock rewind.perspective_stream_locks;
  v_options jsonb;
begin
  for v_lock in
    select l.*
    from rewind.perspective_stream_locks l
    join unnest(p_generation_ids, p_stream_ids) a (generation_id, stream_id) on l.stream_id = a.stream_id and l.generation_id = a.generation_id
    where l.expires_at <= rewind._now()
    for update of l skip locked
  loop
    delete from rewind.perspective_stream_locks l where l.stream_id = v_lock.stream_id and l.generation_id = v_lock.generation_id;
    select rewind._perspective_options(g.perspective_name) into v_options
    from rewind.perspective_generations g
    where g.generation_id = v_lock.generation_id;
    update rewind.perspective_cursors c
    set attempts = k.attempts + 1,
        retry_at = r.retry_at,
        status = case when r.retry_at is null then (k.status | 4) & ~2 else k.status end,
        error = format('worker "%s" ended, or lost the stream''s lock, while it repaired the stream', v_lock.owner),
        error_event_id = null
    from (
      select q.stream_id, q.generation_id, q.status, q.attempts
      from rewind.perspective_cursors q
      where q.stream_id = v_lock.stream_id and q.generation_id = v_lock.generation_id and q.status & 44 <> 0
      for update skip locked
    ) k
    cross join lateral (select rewind._retry_at(v_options, k.attempts + 1) as retry_at offset 0) r
    where c.stream_id = k.stream_id and c.generation_id = k.generation_id;
  end loop;
end
$function$;

comment on function rewind._abandon_repairs(int[], uuid[]) is 'Counts an attempt for repairs whose workers ended.';
