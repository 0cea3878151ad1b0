-- As _perspective_generation, for who reads its models and snapshots: it keeps these until the transaction ends. One that was dropped while
-- that waited is looked up once more. Errors: RW006, RW018.
create or replace function rewind._readable_generation(p_perspective text, p_generation int)
  returns rewind.perspective_generations
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
begin
  for v_attempt in 1 .. 2 loop
    v_generation := rewind._perspective_generation(p_perspective, p_generation);
    begin
      -- Which locks them.
      execute format('select from rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s limit 0', v_generation.generation_id);
      return v_generation;
    exception when undefined_table then
      null;
    end;
  end loop;
  raise exception 'generation % of perspective "%" was dropped just now', v_generation.generation_id, p_perspective using
    errcode = 'RW018',
    detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', v_generation.generation_id)::text;
end
$function$;

comment on function rewind._readable_generation(text, int) is 'The active generation of a perspective, or the given one of it, kept for reading.';
