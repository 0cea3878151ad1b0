-- Refuses options that nobody would read, and values that are not of their option's kind: a name means the same in every function. JSON null
-- stands for an option that is not given. Errors: 22023.
create or replace function rewind._check_options(p_options jsonb, p_allowed text[]) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_unknown text[];
  v_key text;
  v_value jsonb;
  v_number numeric;
  v_wanted text;
begin
  if p_options is null or p_options = '{}' then
    return;
  end if;
  if jsonb_typeof(p_options) <> 'object' then
    raise exception 'options must be a JSON object, not %', jsonb_typeof(p_options) using errcode = '22023';
  end if;
  select array_agg(k order by k) into v_unknown from jsonb_object_keys(p_options) k where k <> all (p_allowed);
  if v_unknown is not null then
    raise exception 'unknown option "%"', v_unknown[1] using
      errcode = '22023',
      detail = jsonb_build_object('unknown', v_unknown, 'known', p_allowed)::text,
      hint = case when cardinality(p_allowed) > 0 then 'known here: ' || array_to_string(p_allowed, ', ') else 'no options are known here' end;
  end if;

  for v_key, v_value in select o.key, o.value from jsonb_each(p_options) o where o.value <> 'null' loop
    v_number := case when jsonb_typeof(v_value) = 'number' then v_value::numeric end;
    v_wanted := case
      when v_key in ('hold', 'repair', 'wait') then
        case when jsonb_typeof(v_value) <> 'boolean' then 'true or false' end
      when v_key = 'events_folded' then
        case when (v_number between 0 and 2147483647 and v_number % 1 = 0) is not true then 'a whole number from 0 to 2147483647' end
      when v_key in ('events', 'generation_id', 'max_bytes', 'max_records', 'max_streams', 'streams') then
        case when (v_number between 1 and 2147483647 and v_number % 1 = 0) is not true then 'a whole number from 1 to 2147483647' end
      when v_key in ('error_event_id', 'from_stream_id', 'to_stream_id') then
        case when jsonb_typeof(v_value) <> 'string' or v_value #>> '{}' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then 'a uuid' end
      when v_key = 'sample' then
        case when (v_number > 0 and v_number <= 1) is not true then 'a number above 0 and at most 1' end
      when v_key in ('error', 'lease', 'tenant_id', 'timeout', 'worker') then
        case when jsonb_typeof(v_value) <> 'string' then 'text' end
    end;
    if v_wanted is not null then
      raise exception 'option "%" must be %, not %', v_key, v_wanted, v_value using
        errcode = '22023', detail = jsonb_build_object('option', v_key, 'value', v_value)::text;
    end if;
  end loop;
end
$function$;

comment on function rewind._check_options(jsonb, text[]) is 'Raises 22023 unless every key of p_options is allowed and its value of the key''s kind.';
