-- Locks the partitions of streams in ascending order; gives their ids and partitions, both in the order of p_streams. A partition that
-- has ended when its lock is got, since the tree moved meanwhile, is left for the one that the stream has now. An older snapshot can't see
-- that: a row lock on the partition tells it.
-- Errors: RW005 (the tree is gone); 40001 (a partition would have to be taken out of order and is in use, the tree moved after the
-- transaction's snapshot, or another tree has its name now).
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
  v_tree rewind.trees := p_tree;
  v_ascending int[];
  v_partition int;
  v_open bigint;
begin
  loop
    select
      array_agg(s.stream_id order by s.n),
      array_agg(s.wal_partition order by s.n),
      coalesce(array_agg(distinct s.wal_partition order by s.wal_partition), '{}')
    into stream_ids, partitions, v_ascending
    from (
      select k.n, k.stream_id, rewind._stream_partition(k.stream_id, v_tree.first_partition, v_tree.partitions) as wal_partition
      from (
        select u.n, rewind._stream_id(v_tree.tree_name, p_tenant_id, u.stream_key) as stream_id
        from unnest(p_streams) with ordinality u(stream_key, n)
        offset 0
      ) k
      offset 0
    ) s;

    foreach v_partition in array v_ascending loop
      perform rewind._lock_partition(v_tree.tree_id, v_partition);
    end loop;

    if current_setting('transaction_isolation') = 'read committed' then
      select count(*) into v_open
      from rewind.tree_partitions p
      where p.tree_id = v_tree.tree_id and p.wal_partition = any (v_ascending) and p.end_offset is null;
    else
      perform from rewind.tree_partitions p
      where p.tree_id = v_tree.tree_id and p.wal_partition = any (v_ascending) and p.end_offset is null
      for share;
      get diagnostics v_open = row_count;
    end if;
    exit when v_open = cardinality(v_ascending);
    v_tree := rewind._find_tree(v_tree.tree_name);
    if v_tree.tree_id <> p_tree.tree_id then
      raise exception 'could not serialize access: tree "%" is another one now', v_tree.tree_name using
        errcode = '40001',
        hint = 'retry the transaction';
    end if;
  end loop;
end
$function$;

comment on function rewind._lock_streams(rewind.trees, text, text[]) is 'Locks the partitions of streams in ascending order, and says where each stream lives.';
