-- The one clock of this schema: everything that asks for the time asks here, so that tests can replace it.
create or replace function rewind._now() returns timestamptz
  language sql volatile parallel safe security invoker
  return clock_timestamp();

comment on function rewind._now() is 'The database''s clock; the only place where time comes from.';
