-- The id of an event whose time is given: 60 bits of time, 20 bits of rank among equal times, 42 bits of a hash of what the event says.
-- Inside the last eight bytes: 2 bits of variant, then rank and hash.
-- Stable for the reason that _stream_id is.
create or replace function rewind._event_id(
  p_time timestamptz,
  p_rank int,
  p_tree text,
  p_tenant_id text,
  p_stream text,
  p_type text,
  p_payload jsonb,
  p_metadata jsonb
) returns uuid
  language sql stable parallel safe security invoker
  return rewind._uuid_from_ticks(
    rewind._ticks(p_time),
    '\x0000000000000000'::bytea || int8send(
      (-9223372036854775808)
      | (p_rank::bigint << 42)
      | (('x' || encode(substr(sha256(
          convert_to(p_tree, 'UTF8') || '\x00'::bytea || convert_to(p_tenant_id, 'UTF8') || '\x00'::bytea
          || convert_to(p_stream, 'UTF8') || '\x00'::bytea || convert_to(p_type, 'UTF8') || '\x00'::bytea
          || convert_to(coalesce(p_payload::text, ''), 'UTF8') || '\x00'::bytea
          || convert_to(coalesce(p_metadata::text, ''), 'UTF8')
        ), 1, 8), 'hex'))::bit(64)::bigint & 4398046511103)
    ));

comment on function rewind._event_id(timestamptz, int, text, text, text, text, jsonb, jsonb) is 'The id of an event with a given time; the same event always gets the same one.';
