-- Locks the cursors of a batch in stream_id order and finds what is late in it (see _generate_batch).
create or replace function rewind._lock_batch(
  p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_to bigint
) returns setof rewind.late_stream
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return query execute format('select * from rewind_gen.lock_batch_%s($1, $2, $3, $4)', p_generation.generation_id)
  using p_generation, p_partition, p_from, p_to;
end
$function$;

comment on function rewind._lock_batch(rewind.perspective_generations, int, bigint, bigint) is
  'Locks a batch''s cursors and returns the streams that are late in it.';
