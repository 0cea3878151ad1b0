-- +goose Up
-- Rebuilds of perspectives: what runs, and how those before went.

create table rewind.perspective_rebuilds (
  rebuild_id bigint generated always as identity primary key,
  perspective_name text not null,
  generation_id int not null,
  mode text not null check (mode in ('blue-green', 'in-place', 'streams', 'rollback')),
  state text not null default 'running' check (state in ('running', 'completed', 'failed', 'aborted')),
  held boolean not null default false,
  stream_ids uuid[],
  replaced_generation int,
  waits_for text,
  attempts int not null default 0,
  retry_at timestamptz,
  streams bigint,
  events bigint,
  failed_streams jsonb not null default '[]',
  error text,
  started_at timestamptz not null,
  completed_at timestamptz
);
create unique index on rewind.perspective_rebuilds (perspective_name) where state = 'running';
comment on table rewind.perspective_rebuilds is 'Rebuilds of perspectives, of which at most one runs per perspective.';
comment on column rewind.perspective_rebuilds.generation_id is 'The generation that is built, or shown again.';
comment on column rewind.perspective_rebuilds.held is 'The generation is not shown before somebody lets go, who looks at it first.';
comment on column rewind.perspective_rebuilds.waits_for is 'Why it has not ended yet, as of the last attempt to end it.';
comment on column rewind.perspective_rebuilds.attempts is 'How often the generation could not be shown yet for a passing reason.';
comment on column rewind.perspective_rebuilds.failed_streams is 'The first hundred streams that failed.';
