-- Puts rewinds off that are not worthwhile yet: until they have been owed for half as long again, and no longer than max_staleness.
-- Locks: the cursors, passing by those that are locked, which are looked at again without it.
create or replace function rewind._defer_rewinds(p_generation_ids int[], p_stream_ids uuid[]) returns void
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  update rewind.perspective_cursors c
  set retry_at = least(
    n.now + greatest((o.options ->> 'debounce_window')::interval, (n.now - c.rewind_first_flagged_at) / 2, interval '1 second'),
    c.rewind_first_flagged_at + (o.options ->> 'max_staleness')::interval)
  from unnest(p_generation_ids, p_stream_ids) d (generation_id, stream_id)
  cross join lateral (
    select k.stream_id, k.generation_id
    from rewind.perspective_cursors k
    where k.stream_id = d.stream_id and k.generation_id = d.generation_id and k.status & 36 = 32
    for update skip locked
  ) k
  join rewind.perspective_generations g on g.generation_id = d.generation_id
  cross join lateral (select rewind._perspective_options(g.perspective_name) as options offset 0) o
  cross join (select rewind._now() as now offset 0) n
  where c.stream_id = k.stream_id and c.generation_id = k.generation_id;
$function$;

comment on function rewind._defer_rewinds(int[], uuid[]) is 'Puts rewinds off that are not worthwhile yet.';
