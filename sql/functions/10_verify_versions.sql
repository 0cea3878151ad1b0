-- Where versions of a tree's streams are not dense. p_stream_ids: only these; null: all.
create or replace function rewind._verify_versions(p_tree_id int, p_stream_ids uuid[]) returns setof rewind.stream_problem
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
as $function$
  select v.stream_id, 'log', jsonb_build_object('stream_version', v.before_version + 1), jsonb_build_object('stream_version', v.stream_version), null::bigint
  from (
    select s.stream_id, w.stream_version, coalesce(lag(w.stream_version) over o, case when p.floor_offset = 0 then 0 end) as before_version
    from rewind.streams s
    join rewind.tree_partitions p on p.tree_id = s.tree_id and p.wal_partition = s.wal_partition
    join rewind.wal w on w.stream_id = s.stream_id
    where s.tree_id = p_tree_id and (p_stream_ids is null or s.stream_id = any (p_stream_ids))
    window o as (partition by w.stream_id order by w.stream_version)
  ) v
  where v.stream_version <> v.before_version + 1;
$function$;

comment on function rewind._verify_versions(int, uuid[]) is 'Checks versions of a tree''s streams.';
