-- +goose Up
-- Batches in Go that were begun: what a worker finds there when it starts ended another one, or is under way in it.

create table rewind.fold_attempts (
  generation_id int not null,
  wal_partition int not null,
  worker_id text not null,
  from_offset bigint,
  record_limit int not null,
  end_offset bigint not null,
  deaths int not null,
  started_at timestamptz not null,
  primary key (generation_id, wal_partition)
) with (fillfactor = 50);
comment on table rewind.fold_attempts is 'Batches that are folded in Go with care, since a fold before end_offset may end its worker''s process.';
comment on column rewind.fold_attempts.from_offset is 'Where the batch under way begins; null: it ended, and its worker lived on.';
comment on column rewind.fold_attempts.deaths is 'How often a batch of the one record at from_offset ended its worker.';
