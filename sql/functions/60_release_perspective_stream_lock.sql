-- Releases a stream lock by its token: false if it was not held with it any more. Idempotent.
create or replace function rewind.release_perspective_stream_lock(
  p_generation_id int, p_stream_id uuid, p_token bigint, p_options jsonb default '{}'
) returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  delete from rewind.perspective_stream_locks
  where generation_id = p_generation_id and stream_id = p_stream_id and token = p_token;
  return found;
end
$function$;

comment on function rewind.release_perspective_stream_lock(int, uuid, bigint, jsonb) is 'Releases a stream lock; false if it was not held.';
