-- As _perspective_generation, for who reads its models and snapshots: it keeps these until the transaction ends. Errors: RW006, RW018 (also:
-- it was dropped while that waited).
create or replace function rewind._readable_generation(p_perspective text, p_generation int)
  returns rewind.perspective_generations
  language plpgsql stable parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._perspective_generation(p_perspective, p_generation);
begin
  -- Which locks them.
  execute format('select from rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s limit 0', v_generation.generation_id);
  return v_generation;
exception when undefined_table then
  raise exception 'generation % of perspective "%" was dropped just now', v_generation.generation_id, p_perspective using
    errcode = 'RW018',
    detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', v_generation.generation_id)::text,
    hint = 'try again, for the one that is shown now';
end
$function$;

comment on function rewind._readable_generation(text, int) is 'The active generation of a perspective, or the given one of it, kept for reading.';
