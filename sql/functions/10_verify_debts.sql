-- What was passed over (I2), or will be since its cursor is ahead of the log, and what belongs to nothing, in one snapshot.
-- p_stream_ids: only these; null: all.
create or replace function rewind._verify_debts(p_generation rewind.perspective_generations, p_stream_ids uuid[])
  returns setof rewind.stream_problem
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
as $function$
begin
  return query execute format(
    $sql$
    select s.stream_id, case when c.stream_id is null then 'missing_cursor' else 'owed' end,
      jsonb_build_object('next_offset', w.next_offset),
      jsonb_build_object('wal_partition', w.wal_partition, 'wal_offset', w.wal_offset, 'stream_version', w.stream_version, 'event_id', w.event_id),
      c.applied_version
    from rewind.streams s
    left join %1$s c on c.stream_id = s.stream_id
    cross join lateral (
      select v.wal_partition, v.wal_offset, v.stream_version, v.event_id, t.next_offset
      from rewind.wal v
      cross join lateral (
        select r.next_offset from rewind.perspective_partitions r
        where r.generation_id = $1 and r.wal_partition = v.wal_partition
        offset 0
      ) t
      where v.stream_id = s.stream_id and v.stream_version > coalesce(c.applied_version, 0) and v.wal_offset < t.next_offset
        and v.kind = 6 and ($2::text[] is null or v.event_type = any ($2))
      order by v.stream_version
      limit 1
    ) w
    where s.tree_id = $3 and ($4 is null or s.stream_id = any ($4)) and coalesce(c.status, 0) & 44 = 0
    union all
    select c.stream_id, 'orphan', null, jsonb_build_object('cursor', c.stream_id), c.applied_version
    from %1$s c
    where ($4 is null or c.stream_id = any ($4))
      and not exists (select from rewind.streams s where s.stream_id = c.stream_id and s.tree_id = $3)
    union all
    select c.stream_id, 'events_applied', jsonb_build_object('applied_version', h.stream_version),
      jsonb_build_object('applied_version', c.applied_version), c.applied_version
    from %1$s c
    cross join lateral (
      select v.stream_version from rewind.wal v where v.stream_id = c.stream_id order by v.stream_version desc limit 1
    ) h
    where ($4 is null or c.stream_id = any ($4)) and c.applied_version > h.stream_version
    union all
    select n.stream_id, 'orphan', null, jsonb_build_object('snapshot', n.event_id), n.applied_version
    from %2$s n
    where ($4 is null or n.stream_id = any ($4)) and not exists (select from %1$s c where c.stream_id = n.stream_id)
    $sql$,
    p_generation.model_table, format('rewind_gen.snapshots_%s', p_generation.generation_id))
  using p_generation.generation_id, p_generation.event_types, p_generation.tree_id, p_stream_ids;
end
$function$;

comment on function rewind._verify_debts(rewind.perspective_generations, uuid[]) is 'Finds what was passed over and what belongs to nothing.';
