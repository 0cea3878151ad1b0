-- Looks for what makes a fold unsafe: in the text of its function, and by folding some streams twice, event by event, and in other orders.
-- A row per finding; severity is ok, note or warning. It may not find everything.
-- Options: streams (20) that are tried, of those that have at most events (1000). Errors: RW006, RW018, 22023, 0A000 (folded in Go).
create or replace function rewind.check_perspective(p_perspective text, p_options jsonb default '{}')
  returns setof rewind.perspective_finding
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
  set jit = off
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._readable_generation(p_perspective, null);
  v_streams int;
  v_events int;
  v_stream rewind.streams;
  v_event rewind.stream_event;
  v_tried int := 0;
  v_models jsonb;
  v_model jsonb;
  v_step jsonb;
  v_failing text;
  v_unequal text;
  v_stepwise text;
  v_ordered text;
begin
  perform rewind._check_options(p_options, array['streams', 'events']);
  v_streams := coalesce((p_options ->> 'streams')::int, 20);
  v_events := coalesce((p_options ->> 'events')::int, 1000);
  perform rewind._require_sql_fold(v_generation);
  return query select * from rewind._find_unsafe(v_generation.apply::regprocedure::oid);

  for v_stream in execute format(
    $sql$
    select s.* from %s c join rewind.streams s on s.stream_id = c.stream_id
    where c.events_applied <= $1
    order by random()
    limit $2
    $sql$, v_generation.model_table)
  using v_events, v_streams
  loop
    v_tried := v_tried + 1;
    v_models := rewind._try_fold(format(
      $sql$
      select jsonb_build_array(
        (select %1$s from (select * from rewind._stream_events($1, $2) e order by e.event_id) w),
        (select %1$s from (select * from rewind._stream_events($1, $2) e order by e.event_id) w),
        (select %1$s from (select * from rewind._stream_events($1, $2) e order by e.event_id desc) w),
        (select %1$s from (select * from rewind._stream_events($1, $2) e order by md5(e.event_id::text)) w))
      $sql$,
      rewind._fold_call(v_generation, '$3', 'null', p_sorted => true)), v_generation, v_stream);
    v_model := v_models -> 0;
    if v_model ? 'rewind:error' then
      v_failing := coalesce(v_failing, format('stream "%s": %s', v_stream.stream_key, v_model -> 'rewind:error' ->> 'message'));
      continue;
    end if;
    v_step := null;
    for v_event in select * from rewind._stream_events(v_generation, v_stream) e order by e.event_id loop
      execute format('select coalesce(%s, $3) from (select ($1).*) w', rewind._fold_call(v_generation, 'true', '$2'))
      into v_step
      using v_event, nullif(v_step, 'null'), v_step; -- null: the event is skipped
    end loop;
    if v_model <> v_models -> 1 then
      v_unequal := coalesce(v_unequal, v_stream.stream_key);
    elsif v_model <> coalesce(v_step, 'null') then
      v_stepwise := coalesce(v_stepwise, v_stream.stream_key);
    end if;
    if v_model <> v_models -> 2 or v_model <> v_models -> 3 then
      v_ordered := coalesce(v_ordered, v_stream.stream_key);
    end if;
  end loop;

  return query
  select f.subject, f.severity, f.finding
  from (
    values
      ('errors', v_failing, 'raises for ' || v_failing, 'raises for none of the streams'),
      ('determinism', v_unequal, format('folded twice, stream "%s" has two models', v_unequal), 'folded twice, every stream has the same model'),
      ('batches', v_stepwise, format('folded event by event, stream "%s" has another model', v_stepwise),
        'folded event by event, every stream has the same model')
  ) r (subject, stream, bad, good)
  cross join lateral (
    select r.subject, case when r.stream is null then 'ok' else 'warning' end, case when r.stream is null then r.good else r.bad end
  ) f (subject, severity, finding)
  where v_tried > 0
  union all
  select 'order', 'note', case
    when v_ordered is null then 'folded in other orders, every stream has the same model: the order of events may never matter'
    else format('depends on the order of events, as in stream "%s"', v_ordered)
  end
  where v_tried > 0
  union all
  select 'streams', case when v_tried > 0 then 'ok' else 'note' end, format('%s of at most %s events were tried', v_tried, v_events);
end
$function$;

comment on function rewind.check_perspective(text, jsonb) is 'Looks for what makes a fold unsafe.';
