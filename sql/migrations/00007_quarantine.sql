-- +goose Up
-- Events that the guards of the append held back.

create table rewind.quarantined_events (
  quarantine_id bigint generated always as identity primary key,
  tree_id int not null,
  tenant_id text not null,
  stream_id uuid not null,
  stream_key text not null,
  event_id uuid not null,
  event_type text not null,
  payload jsonb,
  metadata jsonb,
  reason text not null check (reason in ('RW004', 'RW015')),
  detail jsonb not null,
  quarantined_at timestamptz not null,
  state text not null default 'held' check (state in ('held', 'released', 'dropped')),
  decided_at timestamptz,
  drop_reason text,
  unique (stream_id, event_id)
);
comment on table rewind.quarantined_events is 'Events too far in the future (RW004) or too old (RW015), kept out of the log until somebody decides.';
