-- True, or RW010 if a part that is to be read from p_from begins in what was trimmed, perhaps since the reader began. Parallel arrays.
create or replace function rewind._check_feed_floors(p_tree_id int, p_partitions int[], p_from bigint[]) returns boolean
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_wanted jsonb;
  v_available jsonb;
begin
  select jsonb_object_agg(r.wal_partition, r.from_offset), jsonb_object_agg(r.wal_partition, p.floor_offset) into v_wanted, v_available
  from unnest(p_partitions, p_from) r(wal_partition, from_offset)
  join rewind.tree_partitions p on p.tree_id = p_tree_id and p.wal_partition = r.wal_partition and p.floor_offset > r.from_offset;
  if v_wanted is not null then
    perform rewind._refuse_cursor('RW010', (select t.tree_name from rewind.trees t where t.tree_id = p_tree_id),
      'is below what was trimmed away', jsonb_build_object('offsets', v_wanted), jsonb_build_object('offsets', v_available));
  end if;
  return true;
end
$function$;

comment on function rewind._check_feed_floors(int, int[], bigint[]) is 'Refuses to read what was trimmed.';
