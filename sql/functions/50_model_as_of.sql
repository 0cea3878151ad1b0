-- What a stream's model was: as it happened, up to an event (p_event_id) or a time (p_time) of the stream's chronology, both inclusive;
-- as it was known when the stream had p_version records; or both. Without any of them: of all that has arrived. Folds the stream from its
-- beginning and writes nothing. NULL: there was no model. Option: tenant_id.
-- Errors: RW006, RW018, 22023, 0A000 (folded in Go), RW016 (the fold raises).
create or replace function rewind.model_as_of(
  p_perspective text,
  p_stream text,
  p_event_id uuid default null,
  p_time timestamptz default null,
  p_version bigint default null,
  p_options jsonb default '{}'
) returns jsonb
  language plpgsql stable parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._readable_generation(p_perspective, null);
  v_stream rewind.streams;
  v_state jsonb;
begin
  perform rewind._check_options(p_options, array['tenant_id']);
  v_stream := rewind._find_stream(v_generation.tree_id, p_stream, p_options);
  perform rewind._require_sql_fold(v_generation);
  v_state := rewind._try_fold(format(
    $sql$
    select %s
    from rewind._stream_events($1, $2) w
    where w.event_id <= coalesce(($4 ->> 'event_id')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and w.stream_version <= coalesce(($4 ->> 'version')::bigint, 9223372036854775807)
      and ($4 ->> 'time' is null or rewind.event_time(w.event_id) <= ($4 ->> 'time')::timestamptz)
    $sql$,
    rewind._fold_call(v_generation, '$3', 'null')), v_generation, v_stream,
    jsonb_build_object('event_id', p_event_id, 'version', p_version, 'time', p_time));
  if v_state ? 'rewind:error' then
    perform rewind._refuse_fold(p_perspective, p_stream, v_state -> 'rewind:error');
  end if;
  return nullif(v_state, 'null');
end
$function$;

comment on function rewind.model_as_of(text, text, uuid, timestamptz, bigint, jsonb) is
  'What a stream''s model was, as it happened and as it was known.';
