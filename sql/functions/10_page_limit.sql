-- How many events the next page of a replay folds, so that it ends where a snapshot is due: at distances 0, N, 3N, 7N, … before the end.
create or replace function rewind._page_limit(p_remaining bigint, p_spacing bigint, p_max int) returns int
  language sql immutable parallel safe security invoker
  return least(p_max, case when p_remaining > 0 then
    p_remaining - p_spacing * (power(2, floor(log(2, ((p_remaining - 1) / p_spacing + 1)::numeric)))::bigint - 1)
  else p_max end)::int;

comment on function rewind._page_limit(bigint, bigint, int) is 'Events to fold until the next snapshot of a replay is due.';
