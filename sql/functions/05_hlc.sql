-- The first clock value of a moment in the log's hybrid logical clock: Unix milliseconds, shifted left by 16 for a counter.
-- Stable as extract is, or it would not be inlined.
create or replace function rewind._hlc(p_time timestamptz) returns bigint
  language sql stable parallel safe security invoker
  return floor(extract(epoch from p_time) * 1000)::bigint << 16;

comment on function rewind._hlc(timestamptz) is 'A moment as a value of the hybrid logical clock, counter 0.';
