-- What the next step of building a partition folds, of the records p_from <= offset < p_to: the streams among them that have no cursor, in
-- the order of their first records, as many as have p_max_events events together (p_max_bytes not null: so many bytes, of _event_size), but at
-- least one; and up to which offset that is all there is to do. Streams of more than p_max_stream events (or of p_max_bytes) come back as
-- large ones. to_offset = p_from: the first record is of a stream whose cursor has not applied it, so it is for the live path.
-- The caller holds the partition, so that nobody else makes cursors of its streams.
create or replace function rewind._plan_build(
  p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_to bigint, p_max_events bigint, p_max_stream bigint,
  p_max_bytes bigint default null
) returns setof rewind.build_plan
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_nestloop = off
  set enable_mergejoin = off
  set jit = off
as $function$
begin
  return query
  with candidates as (
    select w.stream_id, w.wal_offset, w.stream_version
    from rewind.wal w
    where w.tree_id = p_generation.tree_id and w.wal_partition = p_partition and w.wal_offset >= p_from and w.wal_offset < p_to
      and w.kind = 6 and p_generation.event_types is null
    union all
    select w.*
    from rewind._typed_offsets(p_generation, p_partition, p_from, p_to) o (wal_offset)
    cross join lateral (
      select v.stream_id, v.wal_offset, v.stream_version
      from rewind.wal v
      where v.tree_id = p_generation.tree_id and v.wal_partition = p_partition and v.wal_offset = o.wal_offset
      offset 0
    ) w
    where p_generation.event_types is not null
  ),
  batch as materialized (
    select c.stream_id, min(c.wal_offset) as first_offset, max(c.stream_version) as last_version
    from candidates c
    group by c.stream_id
  ),
  known as materialized (
    select b.stream_id, b.first_offset, k.applied_version is null as is_new, k.status & 44 = 0 and b.last_version > k.applied_version as is_behind
    from batch b
    left join lateral (
      select c.applied_version, c.status
      from rewind.perspective_cursors c
      where c.stream_id = b.stream_id and c.generation_id = p_generation.generation_id
      offset 0
    ) k on true
  ),
  sized as materialized (
    select k.stream_id, k.first_offset, h.events > p_max_stream or coalesce(z.bytes > p_max_bytes, false) as is_large, coalesce(z.bytes, h.events) as size
    from known k
    cross join lateral (
      select l.stream_version as events from rewind.wal l where l.stream_id = k.stream_id order by l.stream_version desc limit 1
    ) h
    left join lateral (
      select sum(rewind._event_size(v.payload, v.metadata)) as bytes
      from rewind.wal v
      where v.stream_id = k.stream_id and p_max_bytes is not null and h.events <= p_max_stream
        and v.kind = 6 and (p_generation.event_types is null or v.event_type = any (p_generation.event_types))
      offset 0
    ) z on true
    where k.is_new
  ),
  added as (
    select s.*, sum(s.size) filter (where not s.is_large) over (order by s.first_offset) as total,
      count(*) filter (where not s.is_large) over (order by s.first_offset) as place
    from sized s
  ),
  bound as materialized (
    select least(
      p_to,
      (select min(k.first_offset) from known k where k.is_behind),
      (select min(a.first_offset) from added a where a.total > coalesce(p_max_bytes, p_max_events) and a.place > 1 and not a.is_large)
    ) as to_offset
  )
  select b.to_offset,
    array_agg(a.stream_id order by a.stream_id) filter (where not a.is_large),
    array_agg(a.stream_id order by a.stream_id) filter (where a.is_large)
  from bound b
  left join added a on a.first_offset < b.to_offset
  group by b.to_offset;
end
$function$;

comment on function rewind._plan_build(rewind.perspective_generations, int, bigint, bigint, bigint, bigint, bigint) is
  'What the next step of building a partition folds.';
