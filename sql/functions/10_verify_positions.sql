-- Where a generation's position in a partition is missing, or beyond the end of the log: what is appended below it would be passed over.
create or replace function rewind._verify_positions(p_generation rewind.perspective_generations) returns setof rewind.stream_problem
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select null::uuid, 'position', jsonb_build_object('wal_partition', p.wal_partition, 'at_most', h.next_offset),
    jsonb_build_object('wal_partition', p.wal_partition, 'next_offset', t.next_offset), null::bigint
  from rewind.tree_partitions p
  left join rewind.perspective_partitions t on t.generation_id = p_generation.generation_id and t.wal_partition = p.wal_partition
  cross join lateral (select greatest(rewind._head_offset(p.tree_id, p.wal_partition), p.floor_offset) as next_offset offset 0) h
  where p.tree_id = p_generation.tree_id and (t.next_offset <= h.next_offset) is not true
  order by p.wal_partition;
$function$;

comment on function rewind._verify_positions(rewind.perspective_generations) is 'Checks a generation''s positions in the log.';
