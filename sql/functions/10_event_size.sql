-- About how many bytes an event takes on its way to a fold in Go, and there: what it carries, uncompressed, and as much as ids, counts and the
-- like take.
create or replace function rewind._event_size(p_payload jsonb, p_metadata jsonb) returns int
  language sql stable parallel safe security invoker
  return 200 + rewind._json_size(p_payload) + rewind._json_size(p_metadata);

comment on function rewind._event_size(jsonb, jsonb) is 'About how many bytes an event takes where it is folded in Go.';
