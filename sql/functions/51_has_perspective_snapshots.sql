-- Whether a stream has any usable snapshot. Option: tenant_id. Errors: RW006, 22023.
create or replace function rewind.has_perspective_snapshots(p_perspective text, p_stream text, p_options jsonb default '{}')
  returns boolean
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select exists (select from rewind.load_perspective_snapshot(p_perspective, p_stream, null, p_options));
$function$;

comment on function rewind.has_perspective_snapshots(text, text, jsonb) is 'Whether a stream has any usable snapshot.';
