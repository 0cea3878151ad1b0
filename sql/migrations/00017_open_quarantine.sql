-- +goose Up
-- Appends of many events with ids or times ask whether their tree has any in quarantine.
create index quarantined_events_open on rewind.quarantined_events (tree_id) where state <> 'released';
