-- The generation that a call means: the perspective's active one, or p_generation if that is one of its own.
-- Errors: RW006 unknown perspective, RW018 a generation it never had.
create or replace function rewind._perspective_generation(p_perspective text, p_generation int)
  returns rewind.perspective_generations
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
begin
  select g.* into v_generation
  from rewind.perspectives p
  join rewind.perspective_generations g
    on g.perspective_name = p.perspective_name and g.generation_id = coalesce(p_generation, p.active_generation)
  where p.perspective_name = p_perspective;
  if not found then
    perform from rewind.perspectives where perspective_name = p_perspective;
    if not found then
      raise exception 'unknown perspective "%"', p_perspective using
        errcode = 'RW006',
        detail = jsonb_build_object('perspective_name', p_perspective)::text,
        hint = 'rewind.create_perspective makes it; names are case-sensitive';
    end if;
    raise exception 'perspective "%" has no generation %', p_perspective, coalesce(p_generation::text, 'that is active') using
      errcode = 'RW018',
      detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', p_generation)::text;
  end if;
  return v_generation;
end
$function$;

comment on function rewind._perspective_generation(text, int) is 'The active generation of a perspective, or the given one of it.';
