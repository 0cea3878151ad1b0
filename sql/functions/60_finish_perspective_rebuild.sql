-- Tries to end the rebuild of a perspective that runs, as workers do, and returns it as it is then; one that was held is let go. For
-- databases without workers: a perspective that folds in Go is shown only when its workers have read everything.
-- Locks: see _finish_rebuild. Errors: RW006, RW014 paused, RW020, 22023 no rebuild is running, 55P03.
create or replace function rewind.finish_perspective_rebuild(p_perspective text, p_options jsonb default '{}')
  returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_rebuild_id bigint;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._perspective_generation(p_perspective, null);
  update rewind.perspective_rebuilds
  set held = false
  where perspective_name = p_perspective and state = 'running'
  returning rebuild_id into v_rebuild_id;
  if not found then
    raise exception 'no rebuild of perspective "%" is running', p_perspective using
      errcode = '22023', detail = jsonb_build_object('perspective_name', p_perspective)::text;
  end if;
  perform rewind._prepare_swap(v_rebuild_id);
  return query select * from rewind._finish_rebuild(v_rebuild_id);
end
$function$;

comment on function rewind.finish_perspective_rebuild(text, jsonb) is 'Tries to end the rebuild of a perspective.';
