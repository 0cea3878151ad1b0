-- What is flagged for a rewind and was so at p_until (null: now), and how many of it a worker leaves alone, since they are parked, or their
-- perspective is paused, unknown to it, or doesn't rewind.
create or replace function rewind._scan_flagged(p_perspectives text[], p_go_perspectives jsonb, p_until timestamptz default null)
  returns setof rewind.flagged_scan
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select
    count(s.stream_id),
    count(distinct s.generation_id),
    count(*) filter (where not s.repaired),
    n.until
  from (select coalesce(p_until, rewind._now()) as until offset 0) n
  left join lateral (
    select c.stream_id, c.generation_id, g.rewinds and (c.status & 4 = 0 or c.retry_at is not null) as repaired
    from (
      select g.generation_id,
        g.generation_id = any (rewind._worker_generations(p_perspectives, p_go_perspectives))
          and (rewind._perspective_options(g.perspective_name) ->> 'rewind_enabled')::boolean as rewinds
      from rewind.perspective_generations g
      where g.state in ('active', 'building')
      offset 0
    ) g
    join rewind.perspective_cursors c on c.generation_id = g.generation_id
    where c.status & 44 <> 0 and c.status & 32 <> 0 and c.rewind_first_flagged_at <= n.until
  ) s on true
  group by n.until;
$function$;

comment on function rewind._scan_flagged(text[], jsonb, timestamptz) is 'What is flagged for a rewind, for a worker that starts.';
