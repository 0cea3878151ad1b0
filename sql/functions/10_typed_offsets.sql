-- Offsets p_from <= offset < p_to of a partition that are of a generation's event types. By an index on (tree_id, wal_partition, event_type,
-- wal_offset) if somebody has made one, and then in a form that no other index can serve: without statistics the planner can't tell. No index
-- of the kind is there by itself, since it would cost appends in batches a tenth of their speed.
create or replace function rewind._typed_offsets(p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_to bigint)
  returns setof bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $function$
begin
  if exists (
    select from pg_index i
    where i.indrelid = 'rewind.wal'::regclass and i.indisvalid and i.indpred is null and (
      select array_agg(a.attname::text order by k.place)
      from unnest(i.indkey) with ordinality k (attnum, place)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    ) = array['tree_id', 'wal_partition', 'event_type', 'wal_offset']
  ) then
    return query
    select o.wal_offset
    from (select distinct t from unnest(p_generation.event_types) t) e (event_type)
    cross join lateral (
      select w.wal_offset
      from rewind.wal w
      where w.tree_id = p_generation.tree_id and w.wal_partition = p_partition
        and (w.event_type, w.wal_offset) >= (e.event_type, p_from) and (w.event_type, w.wal_offset) < (e.event_type, p_to)
        and w.kind = 6
      offset 0
    ) o;
  else
    return query
    select w.wal_offset
    from rewind.wal w
    where w.tree_id = p_generation.tree_id and w.wal_partition = p_partition and w.wal_offset >= p_from and w.wal_offset < p_to
      and w.kind = 6 and w.event_type = any (p_generation.event_types);
  end if;
end
$function$;

comment on function rewind._typed_offsets(rewind.perspective_generations, int, bigint, bigint) is
  'Offsets of a partition that are of a generation''s event types.';
