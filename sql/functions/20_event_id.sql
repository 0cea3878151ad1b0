-- The id that an append gives to an event that comes with its time: the same call or file again makes the same ids, so that repeating it
-- adds nothing. p_rank counts, from 0 and in the given order, the events of the call or file with equal stream and time: so the given
-- order is kept among them, and twins stay two. Options: tenant_id. Errors: 22023.
create or replace function rewind.event_id(
  p_time timestamptz,
  p_rank int,
  p_tree text,
  p_stream text,
  p_type text,
  p_payload jsonb,
  p_metadata jsonb,
  p_options jsonb default '{}'
) returns uuid
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if p_rank is null or p_rank not between 0 and 1048575 then
    raise exception 'rank % is outside of 0 to 1048575', p_rank using errcode = '22023';
  end if;
  if p_time is null or p_time < 'epoch'::timestamptz or extract(epoch from p_time) * 1000 >= 281474976710656 then
    raise exception 'time % does not fit into a UUIDv7', p_time using errcode = '22023';
  end if;
  return rewind._event_id(p_time, p_rank, p_tree, rewind._tenant_id(p_options), p_stream, p_type,
    nullif(p_payload, 'null'), nullif(p_metadata, 'null'));
end
$function$;

comment on function rewind.event_id(timestamptz, int, text, text, text, jsonb, jsonb, jsonb) is 'The UUIDv7 of an event that comes with its time: made of time, rank and content.';
