-- Claims a (generation, partition) for a batch: the row lock is the claim, held to the end of the transaction. The head is read in a
-- statement after the lock was taken. No row if another session holds it, or if the tree has moved and an earlier partition is not read to
-- its end: what a stream has there comes before what it has here. Errors: RW018 no such partition.
create or replace function rewind._claim_partition(p_generation_id int, p_tree_id int, p_partition int, p_limit int)
  returns setof rewind.claimed_range
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_from bigint;
  v_cut bigint;
  v_head bigint;
begin
  if p_limit is null or p_limit < 1 then
    raise exception 'limit must be positive, not %', coalesce(p_limit::text, 'null') using errcode = '22023';
  end if;
  select next_offset, cut_offset into v_from, v_cut
  from rewind.perspective_partitions
  where generation_id = p_generation_id and wal_partition = p_partition
  for update skip locked;
  if not found then
    perform rewind._check_partition(p_generation_id, p_partition);
    return;
  end if;
  if v_from = 0 and exists (
    select from rewind.tree_partitions p
    join rewind.tree_partitions e on e.tree_id = p.tree_id and e.generation < p.generation
    join rewind.perspective_partitions t on t.generation_id = p_generation_id and t.wal_partition = e.wal_partition
    where p.tree_id = p_tree_id and p.wal_partition = p_partition and t.next_offset < e.end_offset
  ) then
    return;
  end if;
  select wal_offset + 1 into v_head
  from rewind.wal
  where tree_id = p_tree_id and wal_partition = p_partition
  order by wal_offset desc
  limit 1;
  v_head := greatest(coalesce(v_head, 0), v_from);
  return query select v_from, least(v_from + p_limit, v_head), v_head, v_cut;
end
$function$;

comment on function rewind._claim_partition(int, int, int, int) is 'Claims a partition of a generation for one batch.';
