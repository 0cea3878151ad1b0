-- +goose Up
-- Repairs in Go that ended their workers, as far as their stream locks, left to expire, tell.

alter table rewind.perspective_stream_locks add column deaths int not null default 0;
comment on column rewind.perspective_stream_locks.deaths is 'How many workers ended while they repaired the stream in Go, the later ones while nothing else was folded.';
alter table rewind.perspective_stream_locks add column alone boolean not null default false;
comment on column rewind.perspective_stream_locks.alone is 'Nothing else is folded in Go now by the worker that holds the lock.';
