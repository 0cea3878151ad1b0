-- +goose Up
-- What the brackets of a stream's rewinds need: when the bracket began, and a stream's history.

alter table rewind.perspective_stream_locks add column bracket_started_at timestamptz;
comment on column rewind.perspective_stream_locks.bracket_started_at is 'Start of the bracket of rewinds of its stream; null: no rewind has begun.';

create index on rewind.perspective_rewinds (stream_id, completed_at);
