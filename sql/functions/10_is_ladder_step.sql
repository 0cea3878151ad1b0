-- Whether a distance from the head in events is one at which snapshots are taken: 0, s, 3s, 7s, 15s, …
create or replace function rewind._is_ladder_step(p_distance bigint, p_spacing bigint) returns boolean
  language sql immutable parallel safe security invoker
  return p_distance % p_spacing = 0 and (p_distance / p_spacing + 1) & (p_distance / p_spacing) = 0;

comment on function rewind._is_ladder_step(bigint, bigint) is 'Whether a distance is one of 0, s, 3s, 7s, …';
