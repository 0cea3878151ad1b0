-- +goose Up
-- Appends of many events with ids or times ask whether their tree has dropped any.
create index quarantined_events_dropped on rewind.quarantined_events (tree_id) where state = 'dropped';
