-- Where offsets and clocks of a tree's partitions are not dense and ascending, above the floor.
create or replace function rewind._verify_offsets(p_tree_id int) returns setof rewind.stream_problem
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
as $function$
  select r.stream_id, 'log',
    jsonb_build_object('wal_partition', r.wal_partition, 'wal_offset', coalesce(r.before_offset + 1, r.floor_offset), 'hlc_above', r.before_hlc::text),
    jsonb_build_object('wal_partition', r.wal_partition, 'wal_offset', r.wal_offset, 'hlc', r.hlc::text),
    null::bigint
  from (
    select w.stream_id, w.wal_partition, w.wal_offset, w.hlc, p.floor_offset, lag(w.wal_offset) over o as before_offset, lag(w.hlc) over o as before_hlc
    from rewind.wal w
    join rewind.tree_partitions p on p.tree_id = w.tree_id and p.wal_partition = w.wal_partition
    where w.tree_id = p_tree_id and w.wal_offset >= p.floor_offset
    window o as (partition by w.wal_partition order by w.wal_offset)
  ) r
  where r.wal_offset <> coalesce(r.before_offset + 1, r.floor_offset) or r.hlc <= r.before_hlc;
$function$;

comment on function rewind._verify_offsets(int) is 'Checks offsets and clocks of a tree''s log.';
