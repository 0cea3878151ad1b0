-- A new UUIDv7 (RFC 9562, method 3), above all earlier ones of the session even when the clock steps back: the last time that was
-- handed out is kept in a setting of the session. (A rollback takes the setting back with everything else.)
create or replace function rewind.uuidv7() returns uuid
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_ticks bigint := greatest(
    rewind._ticks(rewind._now()),
    nullif(current_setting('rewind.last_uuid_ticks', true), '')::bigint + 1);
begin
  perform set_config('rewind.last_uuid_ticks', v_ticks::text, false);
  return rewind._uuid_from_ticks(v_ticks, uuid_send(gen_random_uuid()));
end
$function$;

comment on function rewind.uuidv7() is 'A new UUIDv7, strictly increasing within a session.';
