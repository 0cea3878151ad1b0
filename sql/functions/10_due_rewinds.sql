-- Cursors whose repair is due (_is_due), oldest debt first, those of generations that aren't shown last; those whose stream is held only with
-- p_with_held. p_impatient waits for no debounce, share or backoff; a generation that is being built or rolled back to, which nobody reads,
-- for no debounce and share. What waits costs nothing: there are four ways to what is due, each an index that has it in front. Of more than
-- p_limit that are due by one way, the first ones of that way are seen: longest flagged, quiet or waiting for their retry.
-- defer_ratio not null: a rewind that is only worthwhile if so much of it is owed (see _claim_rewinds).
create or replace function rewind._due_rewinds(
  p_limit int, p_perspectives text[], p_generations int[], p_impatient boolean default false, p_except uuid[] default '{}',
  p_with_held boolean default false
) returns setof rewind.due_rewind
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_now constant timestamptz := rewind._now();
begin
  return query
  with generations as materialized (
    select g.generation_id, g.perspective_name, o.options, i.impatient, g.state = 'active' as is_read,
      case when not i.impatient then (o.options ->> 'defer_ratio')::double precision end as defer_ratio,
      v_now - (o.options ->> 'max_staleness')::interval as stale_since,
      case when p_impatient then 'infinity' else v_now end as retry_until,
      case when o.rewinds and not i.impatient then v_now - (o.options ->> 'debounce_window')::interval else '-infinity' end as quiet_since,
      case
        when not o.rewinds then '-infinity'
        when i.impatient then 'infinity'
        else v_now - (o.options ->> 'max_debounce_window')::interval
      end as flagged_until,
      p_except || array(
        select l.stream_id from rewind.perspective_stream_locks l
        where l.generation_id = g.generation_id and l.expires_at > v_now and not p_with_held
      ) as excluded
    from rewind.perspectives p
    join rewind.perspective_generations g on g.perspective_name = p.perspective_name
    cross join lateral (
      select p_impatient or g.state = 'building' or exists (
        select from rewind.perspective_rebuilds r where r.perspective_name = g.perspective_name and r.generation_id = g.generation_id and r.state = 'running' and r.mode = 'rollback'
      ) as impatient
    ) i
    cross join lateral (
      select e.options, (e.options ->> 'rewind_enabled')::boolean as rewinds
      from (select rewind._options(p.options) as options offset 0) e
    ) o
    where p.state = 'active'
      and (p_perspectives is null or p.perspective_name = any (p_perspectives))
      and (p_generations is null or g.generation_id = any (p_generations))
  )
  select distinct g.generation_id, g.perspective_name, d.stream_id, d.rewind_trigger_event_id, d.applied_version, d.last_event_id,
    case when g.is_read then coalesce(d.rewind_first_flagged_at, d.retry_at, '-infinity') else 'infinity' end as owed_since, d.events_applied,
    case when d.status & 36 = 32 and d.rewind_first_flagged_at > g.stale_since then g.defer_ratio end
  from generations g
  cross join lateral (
    (
      select c.*
      from rewind.perspective_cursors c
      where c.generation_id = g.generation_id and c.stream_id <> all (g.excluded)
        and c.status & 4 = 0 and c.status & 40 <> 0 and c.retry_at is null and c.rewind_first_flagged_at is null
        and rewind._is_due(c.status, c.retry_at, c.rewind_flagged_at, c.rewind_first_flagged_at, c.last_rewind_at, c.last_rewind_ms,
          g.options, v_now, g.impatient)
      limit p_limit
    ) union all (
      select c.*
      from rewind.perspective_cursors c
      where c.generation_id = g.generation_id and c.stream_id <> all (g.excluded)
        and c.status & 4 = 0 and c.status & 40 <> 0 and c.retry_at is null and c.rewind_first_flagged_at <= g.flagged_until
        and rewind._is_due(c.status, c.retry_at, c.rewind_flagged_at, c.rewind_first_flagged_at, c.last_rewind_at, c.last_rewind_ms,
          g.options, v_now, g.impatient)
      order by c.rewind_first_flagged_at nulls first
      limit p_limit
    ) union all (
      select c.*
      from rewind.perspective_cursors c
      where c.generation_id = g.generation_id and c.stream_id <> all (g.excluded)
        and c.status & 36 = 32 and c.retry_at is null and c.rewind_flagged_at <= g.quiet_since
        and rewind._is_due(c.status, c.retry_at, c.rewind_flagged_at, c.rewind_first_flagged_at, c.last_rewind_at, c.last_rewind_ms,
          g.options, v_now, g.impatient)
      order by c.rewind_flagged_at
      limit p_limit
    ) union all (
      select c.*
      from rewind.perspective_cursors c
      where c.generation_id = g.generation_id and c.stream_id <> all (g.excluded) and c.retry_at <= g.retry_until
        and rewind._is_due(c.status, c.retry_at, c.rewind_flagged_at, c.rewind_first_flagged_at, c.last_rewind_at, c.last_rewind_ms,
          g.options, v_now, g.impatient)
      order by c.retry_at
      limit p_limit
    )
  ) d
  order by owed_since, stream_id
  limit p_limit;
end
$function$;

comment on function rewind._due_rewinds(int, text[], int[], boolean, uuid[], boolean) is 'Cursors whose repair is due, oldest debt first.';
