-- +goose Up
-- The log: one row per record, insert-only, with two orders (arrival and chronology).

create table rewind.settings (
  singleton boolean primary key default true check (singleton),
  cluster_id uuid not null default gen_random_uuid(),
  store_epoch uuid not null default gen_random_uuid(),
  options jsonb not null default '{}' check (jsonb_typeof(options) = 'object')
);
comment on table rewind.settings is 'One row: who this installation is, and its options.';
insert into rewind.settings default values;

create table rewind.trees (
  tree_id int generated always as identity primary key,
  tree_name text not null unique check (octet_length(tree_name) between 1 and 500),
  generation int not null default 1,
  partitions int not null check (partitions between 1 and 1024),
  first_partition int not null default 0,
  options jsonb not null default '{}' check (jsonb_typeof(options) = 'object'),
  created_at timestamptz not null default clock_timestamp()
);
comment on table rewind.trees is 'Named key spaces, each with a log of its own.';
comment on column rewind.trees.first_partition is 'First partition number of the current generation; numbers are never used again.';

create table rewind.tree_partitions (
  tree_id int not null,
  wal_partition int not null check (wal_partition >= 0),
  generation int not null,
  floor_offset bigint not null default 0 check (floor_offset >= 0),
  primary key (tree_id, wal_partition)
);
comment on table rewind.tree_partitions is 'Partitions of every generation of every tree; records below floor_offset were trimmed.';

create table rewind.streams (
  stream_id uuid primary key,
  tree_id int not null,
  wal_partition int not null,
  tenant_id text not null default '',
  stream_key text not null,
  created_at timestamptz not null default clock_timestamp()
);
comment on table rewind.streams is 'Streams, written once; stream_id is a hash of (tree, tenant, key).';

create table rewind.wal (
  tree_id int not null,
  wal_partition int not null,
  wal_offset bigint not null,
  hlc bigint not null,
  stream_id uuid not null,
  stream_version bigint not null,
  event_id uuid not null,
  kind smallint not null default 6 check (kind between 0 and 6),
  mode smallint check (mode between 0 and 14),
  event_type text,
  payload jsonb,
  metadata jsonb,
  delta bytea,
  end_key text,
  origin_cluster uuid not null,
  origin_hlc bigint,
  appended_at timestamptz not null default clock_timestamp(),
  primary key (tree_id, wal_partition, wal_offset),
  unique (stream_id, event_id),
  unique (stream_id, stream_version)
);
comment on table rewind.wal is 'The write-ahead log: records in arrival order (wal_offset, stream_version, hlc) and chronology (event_id).';

-- Autovacuum's insert-driven runs keep the visibility map fresh, which index-only counts live on.
alter table rewind.wal set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- +goose StatementBegin
do $do$
begin
  alter table rewind.wal alter column payload set compression lz4;
  alter table rewind.wal alter column metadata set compression lz4;
exception when feature_not_supported or invalid_parameter_value then
  raise notice 'this server was built without lz4; payloads use pglz';
end
$do$;
-- +goose StatementEnd

create type rewind.event as (
  stream_id uuid,
  stream_key text,
  tenant_id text,
  event_id uuid,
  event_type text,
  occurred_at timestamptz,
  payload jsonb,
  metadata jsonb
);
comment on type rewind.event is 'What an apply function sees of an event: nothing of its arrival, so that a fold can depend on chronology alone.';

with system_tree as (
  insert into rewind.trees (tree_name, partitions) values ('$system', 1) returning tree_id
)
insert into rewind.tree_partitions (tree_id, wal_partition, generation)
select tree_id, 0, 1 from system_tree;
