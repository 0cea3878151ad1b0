-- The 60 bits of time in a UUIDv7, for comparing and counting on. Written to be inlined, bytes instead of bit strings.
create or replace function rewind._event_ticks(p_event_id uuid) returns bigint
  language sql immutable parallel safe security invoker
  return (get_byte(uuid_send(p_event_id), 0)::bigint << 52)
    + (get_byte(uuid_send(p_event_id), 1)::bigint << 44)
    + (get_byte(uuid_send(p_event_id), 2)::bigint << 36)
    + (get_byte(uuid_send(p_event_id), 3)::bigint << 28)
    + (get_byte(uuid_send(p_event_id), 4) << 20)
    + (get_byte(uuid_send(p_event_id), 5) << 12)
    + ((get_byte(uuid_send(p_event_id), 6) & 15) << 8)
    + get_byte(uuid_send(p_event_id), 7);

comment on function rewind._event_ticks(uuid) is 'The leading 60 bits of time of a UUIDv7.';
