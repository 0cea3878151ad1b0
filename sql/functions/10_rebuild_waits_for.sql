-- What a rebuild waits for before it can end, null for nothing: events to be folded, or repairs. Failed streams are not waited for.
create or replace function rewind._rebuild_waits_for(p_rebuild rewind.perspective_rebuilds) returns text
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  if p_rebuild.mode = 'streams' then
    if exists (
      select from rewind.perspective_cursors c
      where c.generation_id = p_rebuild.generation_id and c.stream_id = any (p_rebuild.stream_ids)
        and c.status & 4 = 0 and (c.last_rewind_at >= p_rebuild.started_at) is not true
    ) then
      return 'rewinds';
    end if;
    return null;
  end if;
  if exists (
    select from rewind.perspective_partitions t where t.generation_id = p_rebuild.generation_id and t.next_offset < t.cut_offset
  ) then
    return 'events';
  end if;
  if exists (
    select from rewind.perspective_cursors c
    where c.generation_id = p_rebuild.generation_id and c.status & 44 <> 0 and c.status & 12 = 8
  ) then
    return 'large streams';
  end if;
  return null;
end
$function$;

comment on function rewind._rebuild_waits_for(rewind.perspective_rebuilds) is 'What a rebuild waits for before it can end.';
