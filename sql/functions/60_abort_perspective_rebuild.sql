-- Aborts the rebuild of a perspective that runs, or drops the generation that a failed one left. A generation that was being built goes. What
-- an in-place rebuild has emptied is filled on by the live path; flags of selected streams stay, and a rollback simply doesn't happen.
-- Locks: perspective row, stream lock rows, partitions. Errors: RW006, 22023 there is nothing to abort, 55P03.
create or replace function rewind.abort_perspective_rebuild(p_perspective text, p_options jsonb default '{}')
  returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '2s'
as $function$
declare
  v_rebuild rewind.perspective_rebuilds;
  v_building int;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._perspective_generation(p_perspective, null);
  perform from rewind.perspectives where perspective_name = p_perspective for update;
  select * into v_rebuild
  from rewind.perspective_rebuilds r
  where r.perspective_name = p_perspective and (r.state = 'running' or r.state = 'failed' and r.mode = 'blue-green' and exists (
    select from rewind.perspective_generations g where g.generation_id = r.generation_id and g.state = 'building'
  ))
  order by r.rebuild_id desc
  limit 1
  for update;
  if not found then
    raise exception 'no rebuild of perspective "%" is running', p_perspective using
      errcode = '22023', detail = jsonb_build_object('perspective_name', p_perspective)::text;
  end if;
  select g.generation_id into v_building
  from rewind.perspective_generations g
  where g.generation_id = v_rebuild.generation_id and g.state = 'building';
  if found then
    perform rewind._remove_generation(p_perspective, v_building);
  end if;
  return query
  update rewind.perspective_rebuilds
  set state = 'aborted', completed_at = rewind._now(), waits_for = null
  where rebuild_id = v_rebuild.rebuild_id
  returning *;
end
$function$;

comment on function rewind.abort_perspective_rebuild(text, jsonb) is 'Aborts the rebuild of a perspective that runs.';
