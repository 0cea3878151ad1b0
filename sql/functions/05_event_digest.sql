-- 64 bits of an event id, mixed well. Those of a set of events, combined by exclusive or, tell the set, in whatever order it came.
create or replace function rewind._event_digest(p_event_id uuid) returns bigint
  language sql immutable parallel safe security invoker
  return ('x' || encode(substr(sha256(uuid_send(p_event_id)), 1, 8), 'hex'))::bit(64)::bigint;

comment on function rewind._event_digest(uuid) is '64 bits that stand for an event in the digest of a set.';
