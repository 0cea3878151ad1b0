-- Takes the append locks of all open partitions of trees, in the order in which appends take them, and keeps them until the transaction ends.
-- What it reads of the log the caller must read in a later statement. It waits half a second at a time: when a transaction that has appended
-- stays open for longer, it lets go of all locks, so that other appends go on, and tries again later.
-- Errors: 40001 (this transaction holds a later partition, and one of these is in use), 55P03 (not within p_timeout).
create or replace function rewind._pause_appends(p_tree_ids int[], p_timeout interval) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '500ms'
as $function$
declare
  v_give_up constant timestamptz := clock_timestamp() + p_timeout;
  v_until timestamptz;
  v_partition rewind.tree_partitions;
begin
  loop
    begin
      v_until := clock_timestamp() + interval '500 ms';
      for v_partition in
        select * from rewind.tree_partitions p
        where p.tree_id = any (p_tree_ids) and p.end_offset is null
        order by p.tree_id, p.wal_partition
      loop
        perform set_config('lock_timeout', greatest(1, extract(epoch from v_until - clock_timestamp()) * 1000)::int::text, true);
        perform rewind._lock_partition(v_partition.tree_id, v_partition.wal_partition);
      end loop;
      return;
    exception when lock_not_available then
      null; -- the locks went with the block
    end;
    if clock_timestamp() >= v_give_up then
      raise exception 'partition % of tree % is in use by a transaction that stays open', v_partition.wal_partition, v_partition.tree_id using
        errcode = '55P03',
        detail = jsonb_build_object('tree_id', v_partition.tree_id, 'wal_partition', v_partition.wal_partition)::text,
        hint = 'rewindworker status shows the oldest transaction that appended; end it, or call again with a longer "timeout" in p_options';
    end if;
    perform pg_sleep(0.25 + 0.25 * random());
  end loop;
end
$function$;

comment on function rewind._pause_appends(int[], interval) is 'Takes the append locks of all partitions of trees.';
