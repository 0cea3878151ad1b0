-- Judges the ids and times that events came with: the one place that decides which of them are too far in the future. Arrays run in
-- parallel; an event has an id, a time or neither. Errors: RW003, RW004, each with every index.
create or replace function rewind._check_event_ids(p_event_ids uuid[], p_times timestamptz[], p_options jsonb) returns void
  language plpgsql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_skew constant interval := (p_options ->> 'max_clock_skew')::interval;
  v_limit constant bigint := rewind._ticks(rewind._now() + v_skew);
  v_malformed jsonb;
  v_future jsonb;
begin
  select
    jsonb_agg(jsonb_build_object('index', e.n - 1, 'field', 'event_id', 'event_id', e.event_id, 'reason', 'not a UUIDv7') order by e.n)
      filter (where get_byte(uuid_send(e.event_id), 6) >> 4 <> 7 or get_byte(uuid_send(e.event_id), 8) >> 6 <> 2),
    jsonb_agg(jsonb_build_object(
        'index', e.n - 1,
        'field', case when e.event_id is null then 'time' else 'event_id' end,
        'time', coalesce(e.happened_at, rewind.event_time(e.event_id)),
        'reason', 'further in the future than ' || v_skew) order by e.n)
      filter (where coalesce(rewind._event_ticks(e.event_id), rewind._ticks(e.happened_at)) > v_limit)
  into v_malformed, v_future
  from unnest(p_event_ids, p_times) with ordinality e(event_id, happened_at, n);
  if v_malformed is not null then
    perform rewind._refuse_events('RW003', 'event id is not a UUIDv7', v_malformed,
      'make ids with rewind.uuidv7() or a UUIDv7 library, or leave event_id out');
  elsif v_future is not null then
    perform rewind._refuse_events('RW004', 'event is further in the future than max_clock_skew', v_future,
      'set the clock of whoever made the event, or raise the tree''s option max_clock_skew');
  end if;
end
$function$;

comment on function rewind._check_event_ids(uuid[], timestamptz[], jsonb) is 'Raises RW003 or RW004 for ids that are no UUIDv7 or lie too far in the future.';
