-- What is malformed in an event: [{"index", "field", "reason"}], null if nothing is.
create or replace function rewind._event_errors(p_event jsonb, p_index bigint) returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_unknown constant jsonb := case when jsonb_typeof(p_event) = 'object' then
    p_event - array['event_id', 'time', 'type', 'payload', 'metadata'] end;
  v_type constant text := p_event ->> 'type';
  v_event_id constant text := p_event ->> 'event_id';
  v_errors jsonb := jsonb '[]';
begin
  if v_unknown is null then
    return jsonb_build_array(jsonb_build_object('index', p_index, 'field', null, 'reason', 'not an object'));
  end if;

  if v_type is null then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'type', 'reason', 'missing');
  elsif jsonb_typeof(p_event -> 'type') <> 'string' then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'type', 'reason', 'not text');
  elsif octet_length(v_type) > 500 then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'type', 'reason', 'longer than 500 bytes');
  end if;
  if v_event_id !~ '^[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$' then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'event_id', 'reason', 'not a UUID');
  end if;
  if p_event ->> 'time' is null then
    null;
  elsif v_event_id is not null then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'time', 'reason', 'event_id has a time already');
  elsif rewind._parse_time(p_event -> 'time') is null then
    v_errors := v_errors || jsonb_build_object('index', p_index, 'field', 'time',
      'reason', 'neither RFC 3339 text nor Unix milliseconds from 1970 on');
  end if;
  if v_unknown <> '{}' then
    select v_errors || jsonb_agg(jsonb_build_object('index', p_index, 'field', k, 'reason', 'unknown key') order by k)
    into v_errors
    from jsonb_object_keys(v_unknown) k;
  end if;
  return nullif(v_errors, '[]');
end
$function$;

comment on function rewind._event_errors(jsonb, bigint) is 'What is malformed in an event of a call; null if nothing is.';
