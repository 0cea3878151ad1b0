-- Takes the stream lock of a cursor, for a holder of one's own choosing; returns the fencing token.
-- Errors: RW009 held (detail says by whom and until when), RW018, RW014, 22023.
create or replace function rewind.claim_perspective_stream_lock(
  p_generation_id int, p_stream_id uuid, p_owner text, p_reason text, p_options jsonb default '{}'
) returns bigint
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_token bigint;
  v_lock rewind.perspective_stream_locks;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._check_name(n.name, n.value)
  from (values ('stream id', p_stream_id::text), ('owner', p_owner), ('reason', p_reason)) n (name, value);
  v_generation := rewind._writable_generation(p_generation_id);
  perform pg_advisory_xact_lock(1381433338, hashtext(p_stream_id::text)); -- against who takes it in all generations
  v_token := rewind._acquire_stream_lock(p_generation_id, p_stream_id, p_owner, p_reason,
    rewind._perspective_options(v_generation.perspective_name));
  if v_token is null then
    select * into v_lock from rewind.perspective_stream_locks where generation_id = p_generation_id and stream_id = p_stream_id;
    raise exception 'the lock of stream % is held by "%"', p_stream_id, v_lock.owner using
      errcode = 'RW009',
      detail = jsonb_build_object('generation_id', p_generation_id, 'stream_id', p_stream_id, 'owner', v_lock.owner,
        'reason', v_lock.reason, 'expires_at', v_lock.expires_at)::text,
      hint = 'try again when it is released or has expired';
  end if;
  return v_token;
end
$function$;

comment on function rewind.claim_perspective_stream_lock(int, uuid, text, text, jsonb) is 'Takes a stream lock and returns its fencing token.';
