-- Begins a step of building a partition that the caller has claimed: plans it, and leaves streams that are too large for it to the rewind
-- path, by cursors at their beginnings that owe everything (8): a replay goes in pages, without locks. No row: the partition is built, or
-- its next record is for the live path.
create or replace function rewind._begin_build(
  p_generation rewind.perspective_generations, p_partition int, p_range rewind.claimed_range, p_limit int, p_max_bytes bigint default null
) returns setof rewind.build_plan
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_max_stream constant bigint := 50000;
  v_plan rewind.build_plan;
begin
  if p_range.from_offset >= p_range.cut_offset then
    return;
  end if;
  select * into v_plan
  from rewind._plan_build(p_generation, p_partition, p_range.from_offset,
    rewind._build_end(p_generation, p_partition, p_range.from_offset, p_range.cut_offset, p_limit),
    4 * p_limit::bigint, v_max_stream, p_max_bytes);
  if v_plan.to_offset = p_range.from_offset then
    return;
  end if;
  insert into rewind.perspective_cursors (generation_id, stream_id, wal_partition, status)
  select p_generation.generation_id, l, p_partition, 8
  from unnest(v_plan.large_stream_ids) l
  on conflict (stream_id, generation_id) do nothing;
  return next v_plan;
end
$function$;

comment on function rewind._begin_build(rewind.perspective_generations, int, rewind.claimed_range, int, bigint) is
  'Begins a step of building a partition.';
