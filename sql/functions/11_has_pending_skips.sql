-- Whether the repair of a stream leaves out what an operator skipped since: in the active generation. Others leave it out once that is done.
create or replace function rewind._has_pending_skips(p_generation rewind.perspective_generations, p_stream_id uuid) returns boolean
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select exists (
    select from rewind.perspective_skips k
    where rewind._is_active(p_generation.generation_id) and k.perspective_name = p_generation.perspective_name and k.stream_id = p_stream_id and not k.effective
  );
$function$;

comment on function rewind._has_pending_skips(rewind.perspective_generations, uuid) is
  'Whether the repair of a stream leaves out what an operator skipped since.';
