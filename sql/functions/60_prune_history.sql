-- A piece of housekeeping: deletes rewinds from the history that ended longer than history_retention ago, system events that are older than
-- system_retention, and workers and stream locks that have been dead for an hour; at most p_limit of each in one call. While another
-- session is at it, nothing is done.
-- Returns how many rows went; if they are p_limit or more, there may be more to do.
-- Locks: nothing that anybody holds is waited for. Errors: 22023.
create or replace function rewind.prune_history(p_limit int default 1000, p_options jsonb default '{}') returns bigint
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_now constant timestamptz := rewind._now();
  v_dead constant timestamptz := v_now - interval '1 hour';
  v_old constant timestamptz := v_now - (rewind._options('{}') ->> 'history_retention')::interval;
  v_deleted bigint;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  if (p_limit >= 1) is not true then
    raise exception 'p_limit must be at least 1, not %', p_limit using errcode = '22023';
  end if;
  if not pg_try_advisory_xact_lock(1381433342, 0) then
    return 0;
  end if;

  -- The oldest of the history are those with the least ids, nearly: no index on the time alone is needed.
  with old_rewinds as (
    delete from rewind.perspective_rewinds h
    where h.completed_at < v_old
      and h.rewind_id in (select o.rewind_id from rewind.perspective_rewinds o order by o.rewind_id limit p_limit)
    returning 1
  ),
  dead_workers as (
    delete from rewind.workers w
    where w.worker_id in (select d.worker_id from rewind.workers d where d.heartbeat_at < v_dead for update skip locked)
    returning 1
  ),
  dead_locks as (
    delete from rewind.perspective_stream_locks l
    where (l.stream_id, l.generation_id) in (
      select d.stream_id, d.generation_id
      from rewind.perspective_stream_locks d
      where d.expires_at < v_dead
      limit p_limit
      for update skip locked
    )
    returning 1
  )
  select (select count(*) from old_rewinds) + (select count(*) from dead_workers) + (select count(*) from dead_locks)
  into v_deleted;
  return v_deleted + rewind._trim_system(p_limit);
end
$function$;

comment on function rewind.prune_history(int, jsonb) is 'Deletes a piece of what is older than its retention: history of rewinds, system events, dead workers and locks.';
