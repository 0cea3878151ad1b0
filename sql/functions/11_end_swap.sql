-- Shows the generation of a rebuild instead of the active one, by one UPDATE, if it is read up to p_heads (of _begin_swap, in this
-- transaction) and no stream of it is behind what the other one shows: a stream that owes nothing has all that was read, so those that owe
-- are compared. Returns null, or what it waits for.
create or replace function rewind._end_swap(p_rebuild rewind.perspective_rebuilds, p_heads rewind.swap_head[]) returns text
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_active int;
  v_behind bigint;
begin
  select active_generation into strict v_active from rewind.perspectives where perspective_name = p_rebuild.perspective_name;
  if exists (
    select from unnest(p_heads) h
    left join rewind.perspective_partitions t on t.generation_id = p_rebuild.generation_id and t.wal_partition = h.wal_partition
    where (t.next_offset >= h.head_offset) is not true
  ) then
    return 'unread records';
  end if;
  execute format(
    $sql$
    select count(*)
    from rewind_gen.models_%s n
    cross join lateral (select o.applied_version from rewind_gen.models_%s o where o.stream_id = n.stream_id offset 0) o
    where n.status & 44 <> 0 and o.applied_version > n.applied_version
    $sql$,
    p_rebuild.generation_id, v_active)
  into v_behind;
  if exists (select from rewind.perspective_skips k where k.perspective_name = p_rebuild.perspective_name and not k.effective) then
    return 'rewinds of streams with skipped events';
  end if;
  if v_behind > 0 then
    return 'streams that are behind';
  end if;
  update rewind.perspective_generations
  set state = case generation_id when v_active then 'retired' else 'active' end
  where generation_id in (v_active, p_rebuild.generation_id);
  update rewind.perspectives p
  set active_generation = g.generation_id,
      event_types = g.event_types,
      apply = g.apply,
      initial = g.initial,
      version = g.version
  from rewind.perspective_generations g
  where g.generation_id = p_rebuild.generation_id and p.perspective_name = g.perspective_name;
  update rewind.perspective_rebuilds set replaced_generation = v_active where rebuild_id = p_rebuild.rebuild_id;
  return null;
end
$function$;

comment on function rewind._end_swap(rewind.perspective_rebuilds, rewind.swap_head[]) is 'Shows a generation instead of the active one.';
