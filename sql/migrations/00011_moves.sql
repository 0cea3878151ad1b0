-- +goose Up
-- Trees that move: a new generation of partitions takes over where the ones before it end.

alter table rewind.tree_partitions add column end_offset bigint;
comment on column rewind.tree_partitions.end_offset is 'Where the partition ends, since its tree has moved on; null: it is appended to.';
alter table rewind.tree_partitions add column base_hlc bigint;
comment on column rewind.tree_partitions.base_hlc is
  'Clocks of all its records are above this, the last one of the generation before; null in the first generation.';

comment on column rewind.streams.wal_partition is
  'Partition in which the stream began. Where it is appended to follows from its id and its tree (_stream_partition).';
comment on column rewind.perspective_cursors.wal_partition is 'Partition in which the live path read the stream last.';
