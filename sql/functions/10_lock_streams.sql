-- Locks the partitions of streams in ascending order; gives their ids and partitions, both in the order of p_streams.
-- Errors: 40001 (a partition would have to be taken out of order and is in use).
create or replace function rewind._lock_streams(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  out stream_ids uuid[],
  out partitions int[]
)
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_ascending int[];
  v_partition int;
begin
  select
    array_agg(s.stream_id order by s.n),
    array_agg(s.wal_partition order by s.n),
    array_agg(distinct s.wal_partition order by s.wal_partition)
  into stream_ids, partitions, v_ascending
  from (
    select k.n, k.stream_id,
      coalesce(
        (select t.wal_partition from rewind.streams t where t.stream_id = k.stream_id),
        rewind._stream_partition(k.stream_id, p_tree.first_partition, p_tree.partitions)
      ) as wal_partition
    from (
      select u.n, rewind._stream_id(p_tree.tree_name, p_tenant_id, u.stream_key) as stream_id
      from unnest(p_streams) with ordinality u(stream_key, n)
      offset 0
    ) k
    offset 0
  ) s;

  foreach v_partition in array coalesce(v_ascending, '{}') loop
    perform rewind._lock_partition(p_tree.tree_id, v_partition);
  end loop;
end
$function$;

comment on function rewind._lock_streams(rewind.trees, text, text[]) is 'Locks the partitions of streams in ascending order, and says where each stream lives.';
