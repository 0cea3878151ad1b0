-- Renews a stream lock by its token: false if it is lost (expired, taken over, released). A lock that has expired is not revived.
create or replace function rewind.renew_perspective_stream_lock(
  p_generation_id int, p_stream_id uuid, p_token bigint, p_options jsonb default '{}'
) returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  update rewind.perspective_stream_locks l
  set expires_at = n.now + n.timeout
  from (
    select rewind._now() as now, (rewind._perspective_options(g.perspective_name) ->> 'stream_lock_timeout')::interval as timeout
    from rewind.perspective_generations g
    where g.generation_id = p_generation_id
    offset 0
  ) n
  where l.generation_id = p_generation_id and l.stream_id = p_stream_id and l.token = p_token and l.expires_at > n.now;
  return found;
end
$function$;

comment on function rewind.renew_perspective_stream_lock(int, uuid, bigint, jsonb) is 'Renews a stream lock; false if it is lost.';
