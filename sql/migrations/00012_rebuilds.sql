-- +goose Up
-- Rebuilds: how far a generation is built, and what was rebuilt when and how it went.

alter table rewind.perspective_partitions
  add column cut_offset bigint not null default 0,
  add column streams_built bigint not null default 0,
  add column events_built bigint not null default 0;
comment on column rewind.perspective_partitions.cut_offset is
  'Below it the partition is built: a stream that is met without a cursor is folded whole, in chronology. Then the live path goes on.';
comment on column rewind.perspective_partitions.streams_built is 'Streams that were written below cut_offset.';
comment on column rewind.perspective_partitions.events_built is 'Events that were folded below cut_offset.';
