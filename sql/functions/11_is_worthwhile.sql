-- Whether at least p_ratio of what a rewind of a cursor would fold is owed. Where it is not, the rewind waits for more late events:
-- each folds no more than 1 / p_ratio events for one that is owed, so that all of them together stay within a multiple of the log.
create or replace function rewind._is_worthwhile(p_cursor rewind.perspective_cursors, p_ratio double precision) returns boolean
  language sql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select o.records >= p_ratio * (p_cursor.events_applied + o.records - coalesce(n.events_applied, 0))
  from rewind.perspective_generations g
  cross join lateral rewind._owed_records(g, p_cursor.stream_id, p_cursor.applied_version) o
  left join lateral (
    select s.events_applied
    from rewind.perspective_snapshots s
    where s.generation_id = g.generation_id and s.stream_id = p_cursor.stream_id and s.version = g.version
      and s.event_id < least(o.least_event_id, p_cursor.rewind_trigger_event_id)
    order by s.event_id desc
    limit 1
  ) n on true
  where g.generation_id = p_cursor.generation_id;
$function$;

comment on function rewind._is_worthwhile(rewind.perspective_cursors, double precision) is 'Whether enough of a rewind''s work is owed.';
