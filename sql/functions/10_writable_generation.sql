-- A generation that may be written now. Errors: RW018 no such generation, RW014 it is retired or its perspective is paused.
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
  if v_generation.state = 'retired' or v_state = 'paused' then
    raise exception 'generation % of perspective "%" is not written: it is %', p_generation_id, v_generation.perspective_name,
      case when v_generation.state = 'retired' then 'retired' else 'paused' end
    using
      errcode = 'RW014',
      detail = jsonb_build_object(
        'perspective_name', v_generation.perspective_name, 'generation_id', p_generation_id,
        'generation_state', v_generation.state, 'perspective_state', v_state)::text,
      hint = case when v_state = 'paused' then 'rewind.resume_perspective lets it go on' end;
  end if;
  return v_generation;
end
$function$;

comment on function rewind._writable_generation(int) is 'A generation, if it is not retired and its perspective not paused.';
