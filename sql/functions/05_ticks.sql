-- Times as the 60 bits that a UUIDv7 orders by: 48 bits of Unix milliseconds, then 12 bits of fractions of one.
-- Stable as extract is, or it would not be inlined.
create or replace function rewind._ticks(p_time timestamptz) returns bigint
  language sql stable parallel safe security invoker
  return (extract(epoch from p_time) * 4096000)::bigint;

comment on function rewind._ticks(timestamptz) is 'A time as the leading 60 bits of a UUIDv7.';
