-- A feed cursor of a tree at the given offsets; p_after: clocks of the records before them, null where there is none.
create or replace function rewind._feed_cursor(p_tree text, p_generation int, p_partitions int[], p_offsets bigint[], p_after bigint[]) returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return (
    select jsonb_build_object(
      'epoch', (select s.store_epoch from rewind.settings s where s.singleton),
      'tree', p_tree,
      'generation', p_generation,
      'offsets', jsonb_object_agg(u.wal_partition, u.wal_offset),
      'after', coalesce(jsonb_object_agg(u.wal_partition, u.hlc::text) filter (where u.hlc is not null), '{}'))
    from unnest(p_partitions, p_offsets, p_after) u(wal_partition, wal_offset, hlc)
  );
end
$function$;

comment on function rewind._feed_cursor(text, int, int[], bigint[], bigint[]) is 'A feed cursor from its parts.';
