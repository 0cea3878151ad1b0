-- Refuses options that the scope ('installation', 'perspective', 'tree') does not have, and values that nobody could use. JSON null stands for
-- "not set here". Errors: 22023.
create or replace function rewind._check_option_values(p_options jsonb, p_scope text) returns void
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_of_tree constant text[] := array['max_clock_skew', 'skew_policy', 'lateness_horizon'];
  v_of_installation constant text[] := array[
    'history_retention', 'system_retention', 'startup_scan_enabled', 'startup_rewind_mode', 'max_concurrent_rewinds', 'spans_enabled',
    'log_level'];
  -- What interval and Go's time.ParseDuration both read.
  v_duration constant text := '^(?=.)(\d{1,9}(\.\d+)?h)?(\d{1,9}(\.\d+)?m)?(\d{1,9}(\.\d+)?s)?(\d{1,9}(\.\d+)?ms)?(\d{1,9}(\.\d+)?us)?$';
  v_key text;
  v_value jsonb;
  v_number numeric;
  v_wanted text;
begin
  if p_options is null then
    raise exception 'options must be a JSON object, not null' using errcode = '22023';
  end if;
  select o.key, case when o.key = any (v_of_tree) then 'of a tree or the installation' when o.key = any (v_of_installation) then 'of the installation alone'
    else 'of a perspective or the installation' end
  into v_key, v_wanted
  from jsonb_object_keys(case when jsonb_typeof(p_options) = 'object' then p_options end) o (key)
  where rewind._option_defaults() ? o.key and case p_scope
    when 'tree' then o.key <> all (v_of_tree)
    when 'perspective' then o.key = any (v_of_tree || v_of_installation)
  end
  order by o.key
  limit 1;
  if found then
    raise exception 'option "%" is %, not of a %', v_key, v_wanted, p_scope using
      errcode = '22023', detail = jsonb_build_object('unknown', jsonb_build_array(v_key))::text;
  end if;
  perform rewind._check_options(p_options, (
    select array_agg(k order by k)
    from jsonb_object_keys(rewind._option_defaults()) k
    where case p_scope
      when 'tree' then k = any (v_of_tree)
      when 'perspective' then k <> all (v_of_tree || v_of_installation)
      else true
    end));

  for v_key, v_value in select o.key, o.value from jsonb_each(p_options) o where o.value <> 'null' loop
    v_number := case when jsonb_typeof(v_value) = 'number' then v_value::numeric end;
    v_wanted := case
      when v_key in ('rewind_enabled', 'narrate_inline_rewinds', 'snapshots_enabled', 'startup_scan_enabled', 'spans_enabled',
        'order_insensitive') then
        case when jsonb_typeof(v_value) <> 'boolean' then 'true or false' end
      when v_key = 'inline_rewind_events' then
        case when (v_number between 0 and 1000000 and v_number % 1 = 0) is not true then 'a whole number from 0 to 1000000' end
      when v_key in ('snapshot_every_n_events', 'max_snapshots_per_stream', 'rewind_snapshot_interval_events', 'max_attempts', 'max_concurrent_rewinds') then
        case when (v_number between 1 and 1000000 and v_number % 1 = 0) is not true then 'a whole number from 1 to 1000000' end
      when v_key in ('rewind_share', 'defer_ratio') then
        case when (v_number between 0.000001 and 1) is not true then 'a number from 0.000001 to 1' end
      when v_key = 'skew_policy' then
        case when v_value not in ('"reject"', '"quarantine"') then 'reject or quarantine' end
      when v_key = 'startup_rewind_mode' then
        case when v_value not in ('"blocking"', '"background"') then 'blocking or background' end
      when v_key = 'log_level' then
        case when jsonb_typeof(v_value) <> 'string' or v_value #>> '{}' !~ '^(debug|info|warn|error)(,\w+=(debug|info|warn|error))*$' then
          'a level (debug, info, warn, error), then category=level, by commas' end
      else
        case
          when jsonb_typeof(v_value) <> 'string' or v_value #>> '{}' !~ v_duration then 'a duration such as 500ms, 5s or 1h30m'
          when v_key in ('stream_lock_timeout', 'stream_lock_keepalive_interval')
            and (v_value #>> '{}')::interval not between '1 millisecond' and '24 hours' then 'a duration from 1ms to 24h'
          -- Now plus or minus these must be a time.
          when v_key in ('max_clock_skew', 'lateness_horizon', 'history_retention', 'system_retention')
            and (v_value #>> '{}')::interval > '876000 hours' then 'a duration up to 876000h'
        end
    end;
    if v_wanted is not null then
      raise exception 'option "%" must be %, not %', v_key, v_wanted, v_value using
        errcode = '22023',
        detail = jsonb_build_object('option', v_key, 'value', v_value)::text,
        hint = 'default: ' || coalesce(rewind._option_defaults() ->> v_key, 'none');
    end if;
  end loop;
end
$function$;

comment on function rewind._check_option_values(jsonb, text) is 'Raises 22023 for options that are unknown in a scope or have an unusable value.';
