-- +goose Up
-- Perspectives: definitions, builds (generations), cursors with models, snapshots, locks, history.

create schema if not exists rewind_gen;
comment on schema rewind_gen is 'Generated per generation by rewind: model and snapshot tables, fold aggregates.';
create schema if not exists lens;
comment on schema lens is 'Read models: one view per perspective.';

create table rewind.perspectives (
  perspective_name text primary key check (octet_length(perspective_name) between 1 and 63),
  tree_id int not null,
  event_types text[],
  apply text,
  initial jsonb,
  version int not null check (version >= 1),
  options jsonb not null default '{}' check (jsonb_typeof(options) = 'object'),
  state text not null default 'active' check (state in ('active', 'paused')),
  active_generation int,
  created_at timestamptz not null default clock_timestamp()
);
comment on table rewind.perspectives is 'Read models by name: what they fold and which generation is shown.';
comment on column rewind.perspectives.apply is 'Signature of the apply function as text; null: folded in Go. A regprocedure column would block pg_upgrade.';
comment on column rewind.perspectives.initial is 'Model that a fold starts from; SQL perspectives only (in Go the worker knows it).';

create table rewind.perspective_generations (
  generation_id int generated always as identity primary key,
  perspective_name text not null,
  tree_id int not null,
  event_types text[],
  apply text,
  initial jsonb,
  version int not null,
  state text not null check (state in ('building', 'active', 'retired')),
  model_table regclass,
  created_at timestamptz not null default clock_timestamp()
);
create index on rewind.perspective_generations (perspective_name);
comment on table rewind.perspective_generations is 'Builds of a perspective. Each carries its definition, so that two versions can be folded side by side.';

create table rewind.perspective_partitions (
  generation_id int not null,
  wal_partition int not null,
  next_offset bigint not null default 0 check (next_offset >= 0),
  primary key (generation_id, wal_partition)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table rewind.perspective_partitions is 'How far the live path of a generation has read a partition; the row lock is the claim.';

create table rewind.perspective_cursors (
  generation_id int not null,
  stream_id uuid not null,
  wal_partition int not null,
  status int not null default 0,
  applied_version bigint not null default 0,
  events_applied bigint not null default 0,
  last_event_id uuid,
  model jsonb,
  rewind_trigger_event_id uuid,
  rewind_flagged_at timestamptz,
  rewind_first_flagged_at timestamptz,
  last_rewind_at timestamptz,
  last_rewind_ms double precision,
  error text,
  error_event_id uuid,
  attempts int not null default 0,
  retry_at timestamptz,
  first_event_at timestamptz,
  last_event_at timestamptz,
  primary key (stream_id, generation_id)
) partition by list (generation_id);
comment on table rewind.perspective_cursors is 'Cursor and model of a stream in one row, so that both are one write.';
comment on column rewind.perspective_cursors.status is 'Bits: 1 Processing, 2 Completed, 4 Failed, 8 CatchingUp, 32 RewindRequired.';
comment on column rewind.perspective_cursors.applied_version is 'All matching records of the stream up to this stream_version are in the model.';
-- Cursors that owe something (4, 8, 32): what the rewind path and the startup scan look for.
create index perspective_cursors_owed on rewind.perspective_cursors (stream_id)
  where (status & 44) <> 0;

create table rewind.perspective_snapshots (
  generation_id int not null,
  stream_id uuid not null,
  event_id uuid not null,
  applied_version bigint not null,
  events_applied bigint not null,
  model jsonb,
  version int not null,
  reason text not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (stream_id, generation_id, event_id)
) partition by list (generation_id);
comment on table rewind.perspective_snapshots is 'Models as of an event id, right relative to their cursor''s applied_version.';

create sequence rewind.fencing_tokens;
comment on sequence rewind.fencing_tokens is 'Tokens of stream locks: new on every acquisition, never used again.';

create table rewind.perspective_stream_locks (
  generation_id int not null,
  stream_id uuid not null,
  owner text not null,
  reason text not null,
  token bigint not null,
  acquired_at timestamptz not null,
  expires_at timestamptz not null,
  trigger_event_id uuid,
  events_behind bigint not null default 0,
  primary key (stream_id, generation_id)
) with (fillfactor = 50);
comment on table rewind.perspective_stream_locks is 'Held stream locks; a lock whose expires_at has passed by the database''s clock is free.';

create table rewind.perspective_rewinds (
  rewind_id bigint generated always as identity primary key,
  perspective_name text not null,
  generation_id int not null,
  stream_id uuid not null,
  stream_key text not null,
  trigger_event_id uuid,
  snapshot_event_id uuid,
  replay_source text not null check (replay_source in ('snapshot', 'full')),
  events_replayed bigint not null,
  events_folded bigint not null,
  events_behind bigint not null,
  started_at timestamptz not null,
  completed_at timestamptz not null,
  outcome text not null check (outcome in ('completed', 'failed')),
  error text,
  worker text,
  patch jsonb
);
create index on rewind.perspective_rewinds (perspective_name, completed_at);
comment on table rewind.perspective_rewinds is 'History of repairs: what triggered each, how it was repaired, what it changed.';

create table rewind.perspective_skips (
  perspective_name text not null,
  stream_id uuid not null,
  event_id uuid not null,
  reason text not null,
  effective boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (perspective_name, stream_id, event_id)
);
comment on table rewind.perspective_skips is 'Events that an operator left out of a perspective; effective = no longer in the model.';

create table rewind.workers (
  worker_id text primary key,
  started_at timestamptz not null,
  heartbeat_at timestamptz not null,
  version text not null,
  go_perspectives jsonb not null default '{}'
);
comment on table rewind.workers is 'Worker processes by their last heartbeat.';
