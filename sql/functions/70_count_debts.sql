-- What the streams of the perspectives that a worker folds still owe; those whose rewinds are disabled are left out,
-- and generations that are kept for a rollback. A rebuild that runs is owed. A failed stream
-- whose next attempt is due counts as owed too.
create or replace function rewind._count_debts(p_perspectives text[], p_go_perspectives jsonb) returns setof rewind.debts
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select
    count(*) filter (where c.status & 4 = 0 or c.retry_at <= n.now) + (
      select count(*)
      from rewind.perspective_rebuilds r
      where r.state = 'running' and not r.held
        and r.generation_id = any (rewind._worker_generations(p_perspectives, p_go_perspectives))
    ),
    count(*) filter (where c.status & 4 <> 0 and c.retry_at is not null),
    count(*) filter (where c.status & 4 <> 0 and c.retry_at is null)
  from (
    select g.generation_id, (rewind._perspective_options(g.perspective_name) ->> 'rewind_enabled')::boolean as rewind_enabled
    from rewind.perspective_generations g
    where g.generation_id = any (rewind._worker_generations(p_perspectives, p_go_perspectives)) and g.state <> 'retired'
    offset 0
  ) g
  cross join (select rewind._now() as now offset 0) n
  join rewind.perspective_cursors c on c.generation_id = g.generation_id
  where c.status & 44 <> 0 and (c.status & 32 = 0 or g.rewind_enabled);
$function$;

comment on function rewind._count_debts(text[], jsonb) is 'What the streams of the perspectives that a worker folds still owe.';
