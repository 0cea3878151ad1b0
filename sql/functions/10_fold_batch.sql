-- Folds a batch of a SQL perspective and brings back what is to be written (see _generate_batch). The caller holds the partition and has
-- locked the batch's cursors. Folds unguarded first: an event that fails costs its batch a second time, guarded.
create or replace function rewind._fold_batch(
  p_generation rewind.perspective_generations,
  p_partition int,
  p_from bigint,
  p_to bigint,
  p_late rewind.late_stream[],
  p_options jsonb,
  p_guarded boolean default false
) returns rewind.folds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_folds rewind.folds;
begin
  execute format('select * from rewind_gen.fold_batch_%s($1, $2, $3, $4, $5, $6, $7, $8)', p_generation.generation_id)
  into v_folds
  using p_generation, p_partition, p_from, p_to, p_late, p_options, rewind._has_skips(p_generation.perspective_name), p_guarded;
  return v_folds;
exception when others or assert_failure then
  if p_guarded or not rewind._is_fold_error(sqlstate) then
    raise;
  end if;
  return rewind._fold_batch(p_generation, p_partition, p_from, p_to, p_late, p_options, p_guarded => true);
end
$function$;

comment on function rewind._fold_batch(rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb, boolean) is
  'Folds a batch of a SQL perspective, set-based.';
