-- Folds streams of a SQL generation that have no cursor whole, and brings back what is to be written (see _generate_build). Folds unguarded
-- first, as _fold_batch.
create or replace function rewind._fold_streams(
  p_generation rewind.perspective_generations, p_stream_ids uuid[], p_options jsonb, p_guarded boolean default false
) returns rewind.folds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_folds rewind.folds;
begin
  execute format('select * from rewind_gen.build_batch_%s($1, $2, $3, $4, $5)', p_generation.generation_id)
  into v_folds
  using p_generation, p_stream_ids, p_options, rewind._has_skips(p_generation.perspective_name), p_guarded;
  return v_folds;
exception when others or assert_failure then
  if p_guarded or not rewind._is_fold_error(sqlstate) then
    raise;
  end if;
  return rewind._fold_streams(p_generation, p_stream_ids, p_options, p_guarded => true);
end
$function$;

comment on function rewind._fold_streams(rewind.perspective_generations, uuid[], jsonb, boolean) is 'Folds streams of a SQL generation whole.';
