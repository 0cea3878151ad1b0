-- Places where a tree's log is not as it was written: offsets and clocks per partition, versions per stream; above the floor.
create or replace function rewind._verify_log(p_tree_id int, p_stream_id uuid) returns setof rewind.stream_problem
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
    where w.tree_id = p_tree_id and w.wal_offset >= p.floor_offset and p_stream_id is null
    window o as (partition by w.wal_partition order by w.wal_offset)
  ) r
  where r.wal_offset <> coalesce(r.before_offset + 1, r.floor_offset) or r.hlc <= r.before_hlc
  union all
  select v.stream_id, 'log', jsonb_build_object('stream_version', v.before_version + 1), jsonb_build_object('stream_version', v.stream_version), null
  from (
    select s.stream_id, w.stream_version, coalesce(lag(w.stream_version) over o, case when p.floor_offset = 0 then 0 end) as before_version
    from rewind.streams s
    join rewind.tree_partitions p on p.tree_id = s.tree_id and p.wal_partition = s.wal_partition
    join rewind.wal w on w.stream_id = s.stream_id
    where s.tree_id = p_tree_id and (p_stream_id is null or s.stream_id = p_stream_id)
    window o as (partition by w.stream_id order by w.stream_version)
  ) v
  where v.stream_version <> v.before_version + 1;
$function$;

comment on function rewind._verify_log(int, uuid) is 'Places where offsets, clocks or versions of a log are not as they were written.';
