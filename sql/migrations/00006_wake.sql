-- +goose Up
-- Which workers wait for a wake-up, so that nobody is notified in vain.

alter table rewind.workers add column waiting_since timestamptz;
comment on column rewind.workers.waiting_since is 'Since when an idle worker waits for rewind.wake; null: it looks for work by itself.';
