-- A generation that may be written now. Errors: RW018 no such generation, RW014 its perspective is paused.
create or replace function rewind._writable_generation(p_generation_id int)
  returns rewind.perspective_generations
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_state text;
begin
  select g.* into v_generation from rewind.perspective_generations g where g.generation_id = p_generation_id;
  if not found then
    raise exception 'there is no generation %', p_generation_id using
      errcode = 'RW018',
      detail = jsonb_build_object('generation_id', p_generation_id)::text;
  end if;
  select p.state into v_state from rewind.perspectives p where p.perspective_name = v_generation.perspective_name;
  if v_state = 'paused' then
    raise exception 'generation % of perspective "%" is not written: it is paused', p_generation_id, v_generation.perspective_name using
      errcode = 'RW014',
      detail = jsonb_build_object(
        'perspective_name', v_generation.perspective_name, 'generation_id', p_generation_id,
        'generation_state', v_generation.state, 'perspective_state', v_state)::text,
      hint = 'rewind.resume_perspective lets it go on';
  end if;
  return v_generation;
end
$function$;

comment on function rewind._writable_generation(int) is 'A generation, if its perspective is not paused.';
