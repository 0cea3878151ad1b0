-- +goose Up
-- What the function bundle in this database is, so that a binary can tell whether it fits.

create table rewind.schema_bundle (
  singleton boolean primary key default true check (singleton),
  version int not null check (version >= 1),
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
);
comment on table rewind.schema_bundle is 'One row: version and checksum of the migrations and functions that were applied last.';
