-- How a stream's model came to be: its events in chronology, each with its arrival, by how much it was late, what it changed (patch, as in
-- perspective_rewinds) and the model after it. last_set: what of the model of all that has arrived was set by this event and not since.
-- Folds the stream from its beginning, twice: after the event at which the fold raises (error) there are no models. Of a perspective in Go: no
-- models and no patches. Option: tenant_id. Errors: RW006, RW018, 22023.
create or replace function rewind.explain_model(p_perspective text, p_stream text, p_options jsonb default '{}')
  returns setof rewind.explained_event
  language plpgsql stable parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
  set enable_seqscan = off
  set jit = off
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._readable_generation(p_perspective, null);
  v_stream rewind.streams;
  v_fails boolean := false;
begin
  perform rewind._check_options(p_options, array['tenant_id']);
  v_stream := rewind._find_stream(v_generation.tree_id, p_stream, p_options);
  if v_generation.apply is not null then
    v_fails := coalesce(rewind._try_fold(
      format('select %s from rewind._stream_events($1, $2) w', rewind._fold_call(v_generation, '$3', 'null', p_skips => 'true')),
      v_generation, v_stream) ? 'rewind:error', false);
  end if;
  return query execute format(
    $sql$
    with events as (
      select w.*,
        row_number() over chronology as place,
        max(w.event_id::text collate "C") over (order by w.stream_version rows between unbounded preceding and 1 preceding)::uuid as newest,
        %s as state
      from rewind._stream_events($1, $2) w
      window chronology as (order by w.event_id rows unbounded preceding)
    ),
    models as (
      select e.*, case when e.state ? 'rewind:error' then null else nullif(e.state, 'null') end as model, e.state -> 'rewind:error' as error
      from events e
    ),
    steps as materialized (
      select m.*,
        case when m.state is not null and m.error is null then
          rewind._json_patch(lag(m.model) over (order by m.place), m.model)
        end as patch
      from models m
    ),
    changes as (
      select o.op ->> 'path' as path, max(s.place) as place
      from steps s
      cross join lateral jsonb_array_elements(s.patch) o(op)
      group by 1
    ),
    setters as (
      select l.path, max(c.place) as place
      from (select s.model from steps s order by s.place desc limit 1) f
      cross join lateral rewind._json_leaves(f.model) l(path)
      join changes c on l.path = c.path or starts_with(l.path, c.path || '/')
      group by l.path
    )
    select s.place, s.event_id, s.event_type, rewind.event_time(s.event_id), s.stream_version, s.appended_at,
      case when s.newest > s.event_id then rewind.event_time(s.newest) - rewind.event_time(s.event_id) end,
      s.stream_version <= coalesce(c.applied_version, 0),
      rewind._is_skipped($3, s.stream_id, s.event_id, true),
      s.payload, s.patch, coalesce(l.paths, '{}'), s.model,
      case when s.error ->> 'event_id' = s.event_id::text then s.error ->> 'message' end
    from steps s
    left join %s c on c.stream_id = s.stream_id
    left join (select t.place, array_agg(t.path order by t.path) as paths from setters t group by t.place) l on l.place = s.place
    order by s.place
    $sql$,
    case when v_generation.apply is null then 'null::jsonb'
      else rewind._fold_call(v_generation, '$4', 'null', p_skips => 'true', p_over => 'chronology') end,
    v_generation.model_table)
  using v_generation, v_stream, p_perspective, v_fails;
end
$function$;

comment on function rewind.explain_model(text, text, jsonb) is 'How a stream''s model came to be, event by event.';
