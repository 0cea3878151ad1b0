-- +goose Up
-- Digests of the events that are in models, so that certificates cost what is new since they were last asked for.
create table rewind.stream_digests (
  generation_id int not null,
  stream_id uuid not null,
  applied_version bigint not null,
  events bigint not null,
  digest bigint not null,
  primary key (generation_id, stream_id)
);
comment on table rewind.stream_digests is 'Candidate records of streams up to applied_version: how many, and a digest of the set of their ids.';
