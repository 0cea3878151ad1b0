-- Begins to show the generation again that the last rebuild replaced, with its definition. It was kept up to date since; workers put it in
-- place as soon as it is nowhere behind. Calling it again while that is under way changes nothing.
-- Locks: perspective row. Errors: RW006, RW009 a rebuild is running, RW014 paused, 22023 there is no generation to go back to.
create or replace function rewind.rollback_perspective(p_perspective text, p_options jsonb default '{}')
  returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_active rewind.perspective_generations;
  v_previous int;
  v_running rewind.perspective_rebuilds;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform from rewind.perspectives where perspective_name = p_perspective for update;
  v_active := rewind._writable_generation((rewind._perspective_generation(p_perspective, null)).generation_id);
  select * into v_running
  from rewind.perspective_rebuilds r
  where r.perspective_name = p_perspective and r.state = 'running' and r.mode = 'rollback';
  if found then
    return next v_running;
    return;
  end if;
  select g.generation_id into v_previous
  from rewind.perspective_rebuilds r
  join rewind.perspective_generations g on g.generation_id = r.replaced_generation and g.state = 'retired'
  where r.generation_id = v_active.generation_id and r.state = 'completed'
  order by r.rebuild_id desc
  limit 1;
  if not found then
    raise exception 'perspective "%" has no generation to go back to', p_perspective using
      errcode = '22023', detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', v_active.generation_id)::text,
      hint = 'the generation before the active one is kept until the next blue-green rebuild begins';
  end if;
  return query select * from rewind._start_rebuild(p_perspective, v_previous, 'rollback');
end
$function$;

comment on function rewind.rollback_perspective(text, jsonb) is 'Begins to show the generation again that the last rebuild replaced.';
