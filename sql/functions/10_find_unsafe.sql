-- What in the text of a function, and of those of users that it calls, could make a fold depend on more than its arguments. Reads the text,
-- so it finds what is usual, not all. p_seen: functions that were looked through already.
create or replace function rewind._find_unsafe(p_function oid, p_seen oid[] default '{}') returns setof rewind.perspective_finding
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_function pg_catalog.pg_proc;
  v_subject text;
  v_language text;
  v_text text;
  v_schemas text[];
  v_name text;
  v_called oid[];
  v_volatile boolean;
begin
  select * into strict v_function from pg_catalog.pg_proc where oid = p_function;
  v_subject := format('function %s', p_function::regproc);
  select lanname into v_language from pg_catalog.pg_language where oid = v_function.prolang;
  if v_language not in ('sql', 'plpgsql') then
    return query select v_subject, 'note', format('is written in %s, which is not looked through', v_language);
    return;
  end if;
  -- Comments and quoted texts say nothing about what it does.
  v_text := regexp_replace(coalesce(pg_get_function_sqlbody(p_function), v_function.prosrc), '--[^\n]*', '', 'g');
  v_text := lower(regexp_replace(regexp_replace(v_text, '/\*.*?\*/', '', 'g'), '''(?:[^'']|'''')*''', '''''', 'g'));
  v_schemas := array['pg_catalog'] || array(
    select trim(both ' "' from n)
    from unnest(v_function.proconfig) c, regexp_split_to_table(split_part(c, '=', 2), ',') n
    where c like 'search_path=%');

  return query
  select distinct v_subject, 'warning', format('reads %s', m[1])
  from regexp_matches(v_text,
    '\m(current_timestamp|current_date|current_time|localtimestamp|localtime|current_user|session_user)\M', 'g') m;
  if v_language = 'plpgsql' and v_text ~ '\mexecute\M' then
    return query select v_subject, 'warning', 'executes statements that are made as it runs, which are not looked through';
  end if;
  if v_text ~ '\m(float8?|float4|real|double precision)\M' then
    return query select v_subject, 'note', 'calculates in floating point, in which sums depend on order';
  end if;
  return query
  select distinct v_subject, 'warning', format('reads or writes %s', t.oid::regclass)
  from regexp_matches(v_text, '\m(?:from|join|into|update)\s+(?:only\s+)?((?:[a-z_][a-z0-9_$]*\.)?[a-z_][a-z0-9_$]*)', 'g') m
  join pg_catalog.pg_class t on t.oid = to_regclass(m[1]) and t.relkind in ('r', 'p', 'v', 'm', 'f')
  where t.relnamespace <> 'pg_catalog'::regnamespace;

  for v_name in
    select distinct m[1] from regexp_matches(v_text, '((?:[a-z_][a-z0-9_$]*\.)?[a-z_][a-z0-9_$]*)\s*\(', 'g') m
  loop
    -- Stable ones depend on settings, which are pinned, or on what they look up, which is looked for in them; but for those of the clock.
    select array_agg(p.oid), bool_and(p.provolatile = 'v' or p.proname in (
      'now', 'transaction_timestamp', 'statement_timestamp', 'current_setting', 'txid_current', 'pg_current_xact_id'))
    into v_called, v_volatile
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where p.proname = split_part('.' || v_name, '.', -1) and p.oid <> p_function
      and case when strpos(v_name, '.') > 0 then n.nspname = split_part(v_name, '.', 1) else n.nspname = any (v_schemas) end;
    if v_volatile then
      return query select v_subject, 'warning', format('calls %s, which may give another result each time', v_name);
    end if;
    return query
    select f.*
    from pg_catalog.pg_proc p
    cross join lateral rewind._find_unsafe(p.oid, p_seen || p_function) f
    where p.oid = any (v_called) and p.oid <> all (p_seen || p_function)
      and p.pronamespace not in ('pg_catalog'::regnamespace, 'rewind'::regnamespace);
  end loop;
end
$function$;

comment on function rewind._find_unsafe(oid, oid[]) is 'What in a function could make a fold depend on more than its arguments.';
