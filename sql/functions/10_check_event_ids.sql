-- Judges the ids and times that events came with: the one place that decides which of them the guards of a tree hold back, because they
-- are further in the future than max_clock_skew or older than lateness_horizon, by the database's clock. Arrays run in parallel; an
-- event has an id, a time or neither. Returns a complaint about each of them, [{"index", "code", "field", "time", "reason"}], or null;
-- _guard_events acts on it. Errors: RW003 with every index.
create or replace function rewind._check_event_ids(p_event_ids uuid[], p_times timestamptz[], p_options jsonb) returns jsonb
  language plpgsql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_skew constant interval := (p_options ->> 'max_clock_skew')::interval;
  v_horizon constant interval := (p_options ->> 'lateness_horizon')::interval;
  v_now constant timestamptz := rewind._now();
  v_latest constant bigint := rewind._ticks(v_now + v_skew);
  v_earliest constant bigint := coalesce(rewind._ticks(v_now - v_horizon), 0);
  v_malformed jsonb;
  v_complaints jsonb;
begin
  select
    jsonb_agg(jsonb_build_object('index', e.n - 1, 'field', 'event_id', 'event_id', e.event_id, 'reason', 'not a UUIDv7') order by e.n)
      filter (where get_byte(uuid_send(e.event_id), 6) >> 4 <> 7 or get_byte(uuid_send(e.event_id), 8) >> 6 <> 2),
    jsonb_agg(jsonb_build_object(
        'index', e.n - 1,
        'code', case when e.ticks > v_latest then 'RW004' else 'RW015' end,
        'field', case when e.event_id is null then 'time' else 'event_id' end,
        'time', coalesce(e.happened_at, rewind.event_time(e.event_id)),
        'reason', case when e.ticks > v_latest then 'further in the future than ' || v_skew else 'older than ' || v_horizon end) order by e.n)
      filter (where e.ticks not between v_earliest and v_latest)
  into v_malformed, v_complaints
  from (
    select u.*, coalesce(rewind._event_ticks(u.event_id), rewind._ticks(u.happened_at)) as ticks
    from unnest(p_event_ids, p_times) with ordinality u(event_id, happened_at, n)
  ) e;
  if v_malformed is not null then
    perform rewind._refuse_events('RW003', 'event id is not a UUIDv7', v_malformed,
      'make ids with rewind.uuidv7() or a UUIDv7 library, or leave event_id out');
  end if;
  return v_complaints;
end
$function$;

comment on function rewind._check_event_ids(uuid[], timestamptz[], jsonb) is
  'Raises RW003 for ids that are no UUIDv7, and returns complaints about events that the guards of a tree hold back.';
