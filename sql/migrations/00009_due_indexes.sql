-- +goose Up
-- Ways to the cursors whose repair is due that pass by those which wait: workers look for one many times a second, however many wait.

create index perspective_cursors_waiting on rewind.perspective_cursors (rewind_first_flagged_at nulls first)
  where (status & 4) = 0 and (status & 40) <> 0 and retry_at is null;
create index perspective_cursors_quiet on rewind.perspective_cursors (rewind_flagged_at)
  where (status & 36) = 32 and retry_at is null;
create index perspective_cursors_retry on rewind.perspective_cursors (retry_at)
  where retry_at is not null;

comment on column rewind.perspective_cursors.retry_at is
  'Failed (4): when it is tried again, null: parked. Late (32): when a repair that was not worthwhile is looked at again.';
