-- A generation that folds in SQL and may be written now. Errors: RW018, RW014, 22023 folded in Go.
create or replace function rewind._sql_generation(p_generation_id int) returns rewind.perspective_generations
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
begin
  v_generation := rewind._writable_generation(p_generation_id);
  if v_generation.apply is null then
    raise exception 'perspective "%" is folded in Go', v_generation.perspective_name using
      errcode = '22023', hint = 'a worker that registers it applies its batches';
  end if;
  return v_generation;
end
$function$;

comment on function rewind._sql_generation(int) is 'A generation that folds in SQL, if it may be written.';
