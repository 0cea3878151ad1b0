-- Whether an error is the folded event's own; not those that speak of the server's state (serialization, memory, cancellation, …).
create or replace function rewind._is_fold_error(p_sqlstate text) returns boolean
  language sql immutable parallel safe security invoker
  return left(p_sqlstate, 2) not in ('40', '53', '57', '58', 'XX');

comment on function rewind._is_fold_error(text) is 'Whether an error of a fold is its event''s own.';
