-- Begins a blue-green rebuild: a new generation with the given definition, to be built beside the active one; a building one that is
-- there, and those before the active one, are dropped, the latter unless they may still be read. The caller holds the perspective's row.
create or replace function rewind._begin_blue_green(
  p_perspective rewind.perspectives, p_apply text, p_event_types text[], p_initial jsonb, p_version int, p_held boolean
) returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_old rewind.perspective_generations;
  v_generation_id int;
begin
  for v_old in
    select * from rewind.perspective_generations
    where perspective_name = p_perspective.perspective_name and generation_id <> p_perspective.active_generation
    order by generation_id
  loop
    begin
      perform rewind._remove_generation(p_perspective.perspective_name, v_old.generation_id);
    exception when object_in_use or lock_not_available then
      if v_old.state = 'building' then
        raise;
      end if;
      raise notice 'generation % is kept: %', v_old.generation_id, sqlerrm;
    end;
  end loop;
  v_generation_id := rewind._create_generation(p_perspective.perspective_name, p_perspective.tree_id, p_apply, p_event_types, p_initial,
    p_version, 'building');
  perform rewind._copy_access(p_perspective.active_generation, v_generation_id);
  return query select * from rewind._start_rebuild(p_perspective.perspective_name, v_generation_id, 'blue-green', p_held);
end
$function$;

comment on function rewind._begin_blue_green(rewind.perspectives, text, text[], jsonb, int, boolean) is 'Begins a blue-green rebuild.';
