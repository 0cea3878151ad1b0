-- A UUIDv7 of 60 bits of time and 62 bits from p_random, whose last eight bytes already carry the variant when it is a UUID itself.
create or replace function rewind._uuid_from_ticks(p_ticks bigint, p_random bytea) returns uuid
  language sql immutable parallel safe security invoker
  return encode(int8send(((p_ticks >> 12) << 16) | 28672 | (p_ticks & 4095)) || substr(p_random, 9), 'hex')::uuid;

comment on function rewind._uuid_from_ticks(bigint, bytea) is 'A UUIDv7 made of 60 bits of time and the last eight of sixteen bytes.';
