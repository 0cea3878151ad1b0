-- Begins to end a blue-green rebuild or a rollback: stops everything that moves cursors of the two generations, up to the end of the
-- transaction, and returns up to where the partitions of the new one have to be read then: to the heads as of a moment at which the old
-- one had stopped. Nothing of the old one is beyond them.
-- No row while another session is at it. Locks: perspective row, rebuild row, all stream locks (claims and completions wait), partitions of both generations in order.
create or replace function rewind._begin_swap(p_rebuild_id bigint) returns setof rewind.swap_head
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '1s'
as $function$
declare
  v_rebuild rewind.perspective_rebuilds;
  v_active int;
begin
  perform rewind._require_read_committed();
  perform from rewind.perspectives p
  where p.perspective_name = (select r.perspective_name from rewind.perspective_rebuilds r where r.rebuild_id = p_rebuild_id)
  for update skip locked;
  if not found then
    return;
  end if;
  select * into v_rebuild
  from rewind.perspective_rebuilds
  where rebuild_id = p_rebuild_id and state = 'running' and not held and mode in ('blue-green', 'rollback')
  for update skip locked;
  if not found then
    return;
  end if;
  select active_generation into strict v_active from rewind.perspectives where perspective_name = v_rebuild.perspective_name;
  lock table rewind.perspective_stream_locks in exclusive mode;
  perform from rewind.perspective_partitions
  where generation_id in (v_active, v_rebuild.generation_id)
  order by generation_id, wal_partition
  for update;
  return query
  select t.wal_partition, t.next_offset, rewind._head_offset(g.tree_id, t.wal_partition)
  from rewind.perspective_partitions t
  join rewind.perspective_generations g on g.generation_id = t.generation_id
  where t.generation_id = v_rebuild.generation_id
  order by t.wal_partition;
end
$function$;

comment on function rewind._begin_swap(bigint) is 'Stops what moves cursors of two generations, before one is shown instead of the other.';
