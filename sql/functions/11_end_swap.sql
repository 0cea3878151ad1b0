-- Shows the generation of a rebuild instead of the active one, by one UPDATE, if it is read up to p_heads (of _begin_swap, in this
-- transaction) and no stream of it is behind what the other one shows: a stream that owes nothing has all that was read, so those that owe
-- are compared. Returns null, or what it waits for. What was skipped but is in the model that is shown yet is in that of the new
-- generation, too, which is flagged to leave it out; repairs of such streams that are under way lose their locks.
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
  v_stream_ids uuid[];
  v_skipped_ids uuid[];
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
  if v_behind > 0 then
    return 'streams that are behind';
  end if;
  select array_agg(k.stream_id order by k.stream_id), array_agg(k.event_id order by k.stream_id)
  into v_stream_ids, v_skipped_ids
  from (
    select distinct on (k.stream_id) k.stream_id, k.event_id
    from rewind.perspective_skips k
    where k.perspective_name = p_rebuild.perspective_name and not k.effective
    order by k.stream_id, k.event_id
  ) k;
  if v_stream_ids is not null then
    delete from rewind.perspective_stream_locks l
    where l.generation_id in (v_active, p_rebuild.generation_id) and l.stream_id = any (v_stream_ids);
    perform from rewind.perspective_cursors c
    where c.generation_id = p_rebuild.generation_id and c.stream_id = any (v_stream_ids)
    order by c.stream_id
    for update;
    perform rewind._flag_cursors(p_rebuild.generation_id, v_stream_ids, v_skipped_ids);
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
