-- When a failed stream is tried again: exponential backoff, up to half of it as jitter; null (parked) once the attempts are used up.
create or replace function rewind._retry_at(p_options jsonb, p_attempts int) returns timestamptz
  language sql volatile parallel safe security invoker
  return case when p_attempts < (p_options ->> 'max_attempts')::int then
    rewind._now() + make_interval(secs => least(
      extract(epoch from (p_options ->> 'retry_backoff')::interval) * power(2, least(p_attempts - 1, 30)),
      extract(epoch from (p_options ->> 'retry_backoff_max')::interval)
    ) * (1 + random() / 2))
  end;

comment on function rewind._retry_at(jsonb, int) is 'Time of the next attempt after p_attempts failed ones; null: parked.';
