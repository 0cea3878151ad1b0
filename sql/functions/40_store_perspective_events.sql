-- The detection step over newly arrived records of a partition (offsets p_from <= o < p_to): flags every cursor that has moved past
-- one of them, and returns those. Streams without a cursor, and records at or below applied_version, are never late.
-- Locks: the cursors of the batch, in stream_id order. Idempotent but for rewind_flagged_at, which slides.
-- Errors: RW020 not READ COMMITTED, RW018 no such generation or partition, 22023 no range, RW014 paused.
create or replace function rewind.store_perspective_events(
  p_generation_id int,
  p_partition int,
  p_from bigint,
  p_to bigint,
  p_options jsonb default '{}'
) returns setof rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_stream_ids uuid[];
  v_triggers uuid[];
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  v_generation := rewind._writable_generation(p_generation_id);
  perform rewind._check_partition(p_generation_id, p_partition);
  if (p_from <= p_to) is not true then
    raise exception 'offsets from % to % are no range', coalesce(p_from::text, 'null'), coalesce(p_to::text, 'null') using errcode = '22023';
  end if;
  select array_agg(l.stream_id order by l.stream_id), array_agg(l.trigger_event_id order by l.stream_id)
  into v_stream_ids, v_triggers
  from rewind._lock_batch(v_generation, p_partition, p_from, p_to) l;
  return query select * from rewind._flag_cursors(p_generation_id, v_stream_ids, v_triggers);
end
$function$;

comment on function rewind.store_perspective_events(int, int, bigint, bigint, jsonb) is
  'Flags the cursors that have moved past a newly arrived record.';
