-- Runs a statement that folds a stream of a SQL perspective, and returns its jsonb: unguarded first (see _generate_fold), and guarded where
-- an event fails, which costs everything a second time. In the statement $1 is the generation, $2 the stream, $3 whether folds are guarded,
-- $4 p_arguments.
create or replace function rewind._try_fold(
  p_statement text, p_generation rewind.perspective_generations, p_stream rewind.streams, p_arguments jsonb default null,
  p_guarded boolean default false
) returns jsonb
  language plpgsql stable parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
as $function$
declare
  v_result jsonb;
begin
  execute p_statement into v_result using p_generation, p_stream, p_guarded, p_arguments;
  return v_result;
exception when others or assert_failure then
  if p_guarded or not rewind._is_fold_error(sqlstate) then
    raise;
  end if;
  return rewind._try_fold(p_statement, p_generation, p_stream, p_arguments, p_guarded => true);
end
$function$;

comment on function rewind._try_fold(text, rewind.perspective_generations, rewind.streams, jsonb, boolean) is
  'Runs a statement that folds a stream, guarded only if an event fails.';
