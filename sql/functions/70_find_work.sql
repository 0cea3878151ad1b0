-- What a worker can do now, in one statement:
--   wal_partition not null: a partition with something to read; those whose first unread record has waited longest come first;
--     is_build: one that is built yet;
--     of a tree that moved those of a generation that is not read to its end
--   stream_id not null, held_by null: a repair is due (one row, however many there are)
--   stream_id and held_by not null: a repair is due, but somebody who is no worker holds the stream's lock
--   rebuild_id not null: a rebuild that may be ready to end
-- p_perspectives null: of any perspective. Those in Go only if p_go_perspectives ({name: version}) has their version.
create or replace function rewind._find_work(p_perspectives text[], p_go_perspectives jsonb) returns setof rewind.work
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_generations constant int[] := rewind._worker_generations(p_perspectives, p_go_perspectives);
begin
  return query
  with positions as materialized (
    select r.generation_id, r.perspective_name, r.tree_id, r.wal_partition, r.next_offset, r.next_offset < r.cut_offset as is_build
    from (
      select g.generation_id, g.perspective_name, g.tree_id, t.wal_partition, t.next_offset, t.cut_offset, p.generation,
        min(p.generation) filter (where p.end_offset is null or t.next_offset < p.end_offset) over (partition by g.generation_id) as reading
      from rewind.perspective_generations g
      join rewind.perspective_partitions t on t.generation_id = g.generation_id
      join rewind.tree_partitions p on p.tree_id = g.tree_id and p.wal_partition = t.wal_partition
      where g.generation_id = any (v_generations)
    ) r
    where r.generation = r.reading
  ),
  heads as materialized (
    select p.tree_id, p.wal_partition, h.wal_offset as last_offset
    from (select distinct tree_id, wal_partition from positions) p
    cross join lateral (
      select w.wal_offset
      from rewind.wal w
      where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition
      order by w.wal_offset desc
      limit 1
    ) h
  )
  select p.generation_id, p.perspective_name, p.wal_partition, null::uuid, null::text, null::text, null::bigint, p.next_offset, p.is_build, null::bigint
  from positions p
  join heads h on h.tree_id = p.tree_id and h.wal_partition = p.wal_partition
  left join lateral (
    select w.hlc from rewind.wal w
    where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition and w.wal_offset = p.next_offset
    offset 0
  ) f on true
  where p.next_offset <= h.last_offset
  order by f.hlc;

  return query
  select d.generation_id, d.perspective_name, null::int, d.stream_id, s.stream_key, null::text, null::bigint, null::bigint, false, null::bigint
  from rewind._due_rewinds(1, null, v_generations) d
  cross join lateral (select t.stream_key from rewind.streams t where t.stream_id = d.stream_id offset 0) s;

  return query
  select l.generation_id, g.perspective_name, null::int, l.stream_id, s.stream_key, l.owner, l.token, null::bigint, false, null::bigint
  from rewind.perspective_stream_locks l
  join rewind.perspective_generations g on g.generation_id = l.generation_id
  cross join lateral (
    select k.* from rewind.perspective_cursors k where k.stream_id = l.stream_id and k.generation_id = l.generation_id offset 0
  ) c
  cross join lateral (select t.stream_key from rewind.streams t where t.stream_id = l.stream_id offset 0) s
  where l.generation_id = any (v_generations) and l.expires_at > rewind._now()
    and not exists (select from rewind.workers k where k.worker_id = l.owner)
    and rewind._is_due(c.status, c.retry_at, c.rewind_flagged_at, c.rewind_first_flagged_at, c.last_rewind_at, c.last_rewind_ms,
      rewind._perspective_options(g.perspective_name), rewind._now(), false);

  return query
  select r.generation_id, r.perspective_name, null::int, null::uuid, null::text, null::text, null::bigint, null::bigint, false, r.rebuild_id
  from rewind.perspective_rebuilds r
  where r.state = 'running' and r.generation_id = any (v_generations) and (r.retry_at <= clock_timestamp()) is not false
    and (not r.held or r.waits_for is distinct from 'release')
    and not exists (
      select from rewind.perspective_partitions t where t.generation_id = r.generation_id and t.next_offset < t.cut_offset
    )
    and (r.mode not in ('blue-green', 'rollback') or (
      select coalesce(sum(u.head_offset - u.next_offset), 0) from rewind._unread_partitions(r.generation_id) u
    ) <= 10000);
end
$function$;

comment on function rewind._find_work(text[], jsonb) is 'What a worker can do now.';
