-- The latest snapshot of a stream that its perspective's version of today can use, before an event if one is given. None: no row.
-- Option: tenant_id. Errors: RW006, 22023.
create or replace function rewind.load_perspective_snapshot(
  p_perspective text, p_stream text, p_before_event_id uuid default null, p_options jsonb default '{}'
) returns setof rewind.perspective_snapshots
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select n.*
  from rewind._perspective_generation(p_perspective, null) g
  join rewind.trees t on t.tree_id = g.tree_id
  join rewind.perspective_snapshots n
    on n.generation_id = g.generation_id and n.version = g.version and n.stream_id = rewind.stream_id(t.tree_name, p_stream, p_options)
  where p_before_event_id is null or n.event_id < p_before_event_id
  order by n.event_id desc
  limit 1;
$function$;

comment on function rewind.load_perspective_snapshot(text, text, uuid, jsonb) is 'The latest usable snapshot of a stream, before an event.';
