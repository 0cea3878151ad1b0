-- Refuses options that nobody would read. Errors: 22023.
create or replace function rewind._check_options(p_options jsonb, p_allowed text[]) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_unknown text[];
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
end
$function$;

comment on function rewind._check_options(jsonb, text[]) is 'Raises 22023 unless every key of p_options is allowed.';
