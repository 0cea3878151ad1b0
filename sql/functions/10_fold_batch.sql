-- Folds a batch of a SQL perspective and brings back what is to be written (see _generate_batch). The caller holds the partition and has
-- locked the batch's cursors.
create or replace function rewind._fold_batch(
  p_generation rewind.perspective_generations,
  p_partition int,
  p_from bigint,
  p_to bigint,
  p_late rewind.late_stream[],
  p_options jsonb
) returns rewind.folds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_folds rewind.folds;
begin
  execute format('select * from rewind_gen.fold_batch_%s($1, $2, $3, $4, $5, $6, $7)', p_generation.generation_id)
  into v_folds
  using p_generation, p_partition, p_from, p_to, p_late, p_options, rewind._has_skips(p_generation.perspective_name);
  return v_folds;
end
$function$;

comment on function rewind._fold_batch(rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb) is
  'Folds a batch of a SQL perspective, set-based.';
