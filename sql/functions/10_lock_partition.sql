-- Takes the right to append to a partition and keeps it until the transaction ends. The one place that knows this class of advisory
-- locks: (0x52570000 + tree_id, wal_partition).
-- Appends never deadlock with each other: a transaction waits only for partitions above all those that it holds, in the order of
-- (tree_id, wal_partition). One below is taken only if it is free at this moment. The greatest one held is remembered in a
-- transaction-local setting, which a rollback to a savepoint takes back just as it does the locks.
-- What a caller reads under the lock it must read in a later statement. Errors: 40001.
create or replace function rewind._lock_partition(p_tree_id int, p_partition int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_place constant bigint := (p_tree_id::bigint << 32) | p_partition;
  v_held constant bigint := coalesce(nullif(current_setting('rewind.held_partition', true), '')::bigint, -1);
begin
  if v_place > v_held then
    perform pg_advisory_xact_lock(1381433344 + p_tree_id, p_partition), set_config('rewind.held_partition', v_place::text, true);
  elsif v_place < v_held and not pg_try_advisory_xact_lock(1381433344 + p_tree_id, p_partition) then
    raise exception 'partition % of tree % is in use, and this transaction holds a later one', p_partition, p_tree_id using
      errcode = '40001',
      detail = jsonb_build_object('tree_id', p_tree_id, 'wal_partition', p_partition)::text,
      hint = 'retry the transaction; append last in it, or name all its streams first with rewind.lock_streams';
  end if;
end
$function$;

comment on function rewind._lock_partition(int, int) is 'Takes the append lock of a partition, in an order that cannot deadlock.';
