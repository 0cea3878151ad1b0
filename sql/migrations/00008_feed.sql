-- +goose Up
-- The change feed: what reading from a cursor needs beyond the log.

alter table rewind.tree_partitions add column floor_hlc bigint;
comment on column rewind.tree_partitions.floor_hlc is 'Clock of the record before the floor; null while the floor is 0.';
alter table rewind.tree_partitions add column trimmed_offset bigint not null default 0;
comment on column rewind.tree_partitions.trimmed_offset is 'How far trim_tree has come in deleting what is below the floor.';

create table rewind.feed_consumers (
  consumer_name text primary key check (octet_length(consumer_name) between 1 and 500),
  tree_id int not null,
  cursor jsonb not null,
  lease interval not null check (lease > interval '0'),
  owner text,
  token bigint,
  expires_at timestamptz not null,
  advanced_at timestamptz,
  created_at timestamptz not null default clock_timestamp()
);
comment on table rewind.feed_consumers is 'Durable readers of a tree''s feed: the cursor they go on from, and who reads until when.';
comment on column rewind.feed_consumers.token is 'Fencing token of the claim, new on every one; null: never claimed.';
comment on column rewind.feed_consumers.expires_at is 'End of the lease: until then nobody else may claim, and trim_tree keeps what is after the cursor.';
