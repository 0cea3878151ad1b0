-- Pointers (RFC 6901) to what an object or array holds that holds nothing itself.
create or replace function rewind._json_leaves(p_value jsonb) returns setof text
  language sql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  with recursive nodes (path, value) as (
    select '', p_value
    union all
    select n.path || '/' || m.key, m.value
    from nodes n
    cross join lateral (
      select replace(replace(o.key, '~', '~0'), '/', '~1') as key, o.value
      from jsonb_each(case when jsonb_typeof(n.value) = 'object' then n.value end) o
      union all
      select (a.n - 1)::text, a.value
      from jsonb_array_elements(case when jsonb_typeof(n.value) = 'array' then n.value end) with ordinality a(value, n)
    ) m
  )
  select n.path from nodes n
  where n.value is not null and (jsonb_typeof(n.value) not in ('object', 'array') or n.value in ('{}', '[]'));
$function$;

comment on function rewind._json_leaves(jsonb) is 'Pointers to the leaves of a JSON value.';
