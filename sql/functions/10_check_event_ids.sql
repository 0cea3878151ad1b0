-- Judges the ids and times that events came with: the one place that decides which of them are too far in the future.
-- Errors: RW003, RW004, each with every index.
create or replace function rewind._check_event_ids(p_event_ids uuid[], p_times timestamptz[], p_options jsonb) returns void
  language plpgsql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_skew constant interval := (p_options ->> 'max_clock_skew')::interval;
  v_limit constant timestamptz := rewind._now() + v_skew;
  v_errors jsonb;
begin
  select jsonb_agg(jsonb_build_object('index', e.n - 1, 'field', 'event_id', 'event_id', e.event_id, 'reason', 'not a UUIDv7') order by e.n)
  into v_errors
  from unnest(p_event_ids) with ordinality e(event_id, n)
  where get_byte(uuid_send(e.event_id), 6) >> 4 <> 7 or get_byte(uuid_send(e.event_id), 8) >> 6 <> 2;
  if v_errors is not null then
    perform rewind._refuse_events('RW003', 'event id is not a UUIDv7', v_errors,
      'make ids with rewind.uuidv7() or a UUIDv7 library, or leave event_id out');
  end if;

  select jsonb_agg(jsonb_build_object(
      'index', e.n - 1, 'field', e.field, 'event_id', e.event_id, 'time', e.happened_at,
      'reason', 'further in the future than ' || v_skew) order by e.n)
  into v_errors
  from (
    select i.n, 'event_id' as field, i.event_id, rewind.event_time(i.event_id) as happened_at
    from unnest(p_event_ids) with ordinality i(event_id, n)
    where rewind._event_ticks(i.event_id) > rewind._ticks(v_limit)
    union all
    select t.n, 'time', null, t.happened_at
    from unnest(p_times) with ordinality t(happened_at, n)
    where t.happened_at > v_limit
  ) e;
  if v_errors is not null then
    perform rewind._refuse_events('RW004', 'event is further in the future than max_clock_skew', v_errors,
      'set the clock of whoever made the event, or raise the tree''s option max_clock_skew');
  end if;
end
$function$;

comment on function rewind._check_event_ids(uuid[], timestamptz[], jsonb) is 'Raises RW003 or RW004 for ids that are no UUIDv7 or lie too far in the future.';
