-- Ends a rebuild if all of it is done; returns it as it is then, no row while another session is at it. A stream that fails makes it
-- failed. While it can't end it says what it waits for, and when to try again.
-- A generation that is to be shown is read to the heads in this transaction: here, if it folds in SQL; by the caller, if p_heads is what
-- _begin_swap returned in this transaction. It is tried a bounded number of times.
-- Locks: perspective row, rebuild row; to show a generation those of _begin_swap, waiting for no more than a second for any.
create or replace function rewind._finish_rebuild(p_rebuild_id bigint, p_heads jsonb default null)
  returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '1s'
as $function$
declare
  v_max_attempts constant int := 200;
  v_rebuild rewind.perspective_rebuilds;
  v_generation rewind.perspective_generations;
  v_waits_for text;
  v_failed bigint := 0;
  v_attempted boolean := false;
  v_heads rewind.swap_head[] := array(select jsonb_populate_record(null::rewind.swap_head, h) from jsonb_array_elements(p_heads) h);
  v_head rewind.swap_head;
  v_next bigint;
begin
  perform rewind._require_read_committed();
  perform from rewind.perspectives p
  where p.perspective_name = (select r.perspective_name from rewind.perspective_rebuilds r where r.rebuild_id = p_rebuild_id)
  for update skip locked;
  if not found then
    return;
  end if;
  select * into v_rebuild from rewind.perspective_rebuilds where rebuild_id = p_rebuild_id for update skip locked;
  if not found then
    return;
  end if;
  if v_rebuild.state <> 'running' then
    return next v_rebuild;
    return;
  end if;
  v_generation := rewind._writable_generation(v_rebuild.generation_id);
  v_waits_for := rewind._rebuild_waits_for(v_rebuild);
  if v_waits_for is null then
    select count(*),
      coalesce(jsonb_agg(jsonb_build_object('stream_key', f.stream_key, 'tenant_id', f.tenant_id, 'event_id', f.error_event_id, 'error', f.error)
        order by f.stream_key) filter (where f.place <= 100), '[]')
    into v_failed, v_rebuild.failed_streams
    from (
      select s.stream_key, s.tenant_id, c.error_event_id, c.error, row_number() over (order by s.stream_key) as place
      from rewind.perspective_cursors c
      join rewind.streams s on s.stream_id = c.stream_id
      where c.generation_id = v_rebuild.generation_id and c.status & 4 <> 0 and c.status & 44 <> 0 and v_rebuild.mode <> 'rollback'
        and (v_rebuild.stream_ids is null or c.stream_id = any (v_rebuild.stream_ids))
    ) f;
    select count(*), coalesce(sum(c.events_applied), 0) into v_rebuild.streams, v_rebuild.events
    from rewind.perspective_cursors c
    where c.generation_id = v_rebuild.generation_id and (v_rebuild.stream_ids is null or c.stream_id = any (v_rebuild.stream_ids));
    if v_failed = 0 and v_rebuild.held then
      v_waits_for := 'release';
    end if;
  end if;

  if v_waits_for is null and v_failed = 0 and v_rebuild.mode in ('blue-green', 'rollback') then
    v_attempted := true;
    begin
      if p_heads is null then
        v_heads := array(select h from rewind._begin_swap(p_rebuild_id) h);
        foreach v_head in array v_heads loop
          v_next := v_head.next_offset;
          while v_generation.apply is not null and v_next < v_head.head_offset loop
            select b.next_offset into v_next from rewind._apply_batch(v_generation.generation_id, v_head.wal_partition, 5000) b;
            exit when not found;
          end loop;
        end loop;
      end if;
      v_waits_for := rewind._end_swap(v_rebuild, v_heads);
    exception when lock_not_available then
      v_waits_for := 'locks';
    end;
  end if;

  if v_failed > 0 then
    v_rebuild.state := 'failed';
    v_rebuild.error := format('%s streams failed', v_failed);
  elsif v_waits_for is null then
    v_rebuild.state := 'completed';
  elsif v_rebuild.attempts + v_attempted::int >= v_max_attempts then
    v_rebuild.state := 'failed';
    v_rebuild.error := format('the generation could not be shown in %s attempts: it waits for %s', v_max_attempts, v_waits_for);
  end if;
  update rewind.perspective_rebuilds r
  set state = v_rebuild.state,
      error = v_rebuild.error,
      attempts = r.attempts + v_attempted::int,
      waits_for = v_waits_for,
      retry_at = clock_timestamp() + least(2000, 50 * (r.attempts + 1)) * interval '1 millisecond',
      streams = case when v_rebuild.state <> 'running' then v_rebuild.streams end,
      events = case when v_rebuild.state <> 'running' then v_rebuild.events end,
      failed_streams = v_rebuild.failed_streams,
      completed_at = case when v_rebuild.state <> 'running' then rewind._now() end
  where r.rebuild_id = p_rebuild_id
  returning * into v_rebuild;
  return next v_rebuild;
end
$function$;

comment on function rewind._finish_rebuild(bigint, jsonb) is 'Ends a rebuild if all of it is done.';
