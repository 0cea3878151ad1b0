-- Leaves an event out of a perspective's model of its stream, for good and on record. Above applied_version the skip counts at once; at
-- or below, the stream is flagged from the event on, and the skip counts from the completion that leaves it out, so that the model is
-- its fold at every commit. A repair under way loses its lock: it may have folded the event. A stream that failed is tried again at once,
-- with all its attempts. Skipping it again changes nothing.
-- Locks, in all generations: stream lock rows, partitions; then cursors. Errors: RW006, RW013 no cursor, RW014, RW020, 40001, 22023 no such event, no reason.
create or replace function rewind.skip_perspective_event(
  p_perspective text, p_stream text, p_event_id uuid, p_reason text, p_options jsonb default '{}'
) returns setof rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_cursor rewind.perspective_cursors;
  v_version bigint;
  v_is_new boolean;
begin
  if coalesce(p_reason, '') = '' then
    raise exception 'a skip needs a reason' using errcode = '22023';
  end if;
  v_generation := rewind._perspective_generation(p_perspective, null);
  v_cursor := rewind._lock_cursor(p_perspective, p_stream, p_options, true);
  select w.stream_version into v_version
  from rewind.wal w
  where w.stream_id = v_cursor.stream_id and w.event_id = p_event_id
    and w.kind = 6 and (v_generation.event_types is null or w.event_type = any (v_generation.event_types));
  if not found then
    raise exception 'stream "%" has no event % that perspective "%" folds', p_stream, p_event_id, p_perspective using
      errcode = '22023',
      detail = jsonb_build_object('perspective_name', p_perspective, 'stream_key', p_stream, 'event_id', p_event_id)::text;
  end if;
  insert into rewind.perspective_skips (perspective_name, stream_id, event_id, reason, effective)
  values (p_perspective, v_cursor.stream_id, p_event_id, p_reason, false)
  on conflict do nothing;
  v_is_new := found;
  if v_is_new and v_version > v_cursor.applied_version then
    perform rewind._enact_skips(p_perspective, v_cursor.generation_id, v_cursor.stream_id, p_event_id);
  end if;
  if v_is_new then
    delete from rewind.perspective_stream_locks where generation_id = v_cursor.generation_id and stream_id = v_cursor.stream_id;
    if v_version <= v_cursor.applied_version then
      perform rewind._flag_cursors(v_cursor.generation_id, array[v_cursor.stream_id], array[p_event_id]);
    end if;
    update rewind.perspective_cursors
    set attempts = 0,
        retry_at = rewind._now()
    where generation_id = v_cursor.generation_id and stream_id = v_cursor.stream_id and status & 4 <> 0;
  end if;
  return query
  select * from rewind.perspective_cursors where generation_id = v_cursor.generation_id and stream_id = v_cursor.stream_id;
end
$function$;

comment on function rewind.skip_perspective_event(text, text, uuid, text, jsonb) is 'Leaves an event out of a perspective, on record.';
