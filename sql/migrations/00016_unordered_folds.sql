-- +goose Up
-- Streams whose late events were folded on without a replay, since their perspective claims that order doesn't matter to it.
create table rewind.unordered_folds (
  generation_id int not null,
  stream_id uuid not null,
  primary key (generation_id, stream_id)
);
comment on table rewind.unordered_folds is 'Streams to be replayed if the claim that order doesn''t matter to their perspective turns out false.';
