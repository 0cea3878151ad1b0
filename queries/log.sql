-- name: CreateTree :one
select * from rewind.create_tree(p_name => @name, p_partitions => @partitions, p_options => @options);

-- name: RepartitionTree :one
select * from rewind.repartition_tree(p_tree => @tree, p_partitions => @partitions);

-- name: RepointTree :one
select * from rewind.repoint_tree(p_tree => @tree, p_to => @to_tree);

-- name: AppendEvents :many
select * from rewind.append_events(
  p_tree => @tree, p_stream => @stream, p_events => @events, p_expected_version => sqlc.narg(expected_version), p_options => @options);

-- Arrays are of text, which every execution mode of pgx can encode; '' stands for what is missing.
-- name: AppendBatch :many
select * from rewind.append_batch(
  p_tree => @tree,
  p_streams => @streams::text[],
  p_event_ids => array_replace(@event_ids::text[], '', null)::uuid[],
  p_types => array_replace(@types::text[], '', null),
  p_payloads => array_replace(@payloads::text[], '', null)::jsonb[],
  p_metadata => array_replace(@metadata::text[], '', null)::jsonb[],
  p_options => @options);

-- name: LockStreams :exec
select rewind.lock_streams(p_tree => @tree, p_streams => @streams::text[], p_options => @options);

-- name: ReadStream :many
select * from rewind.read_stream(
  p_tree => @tree, p_stream => @stream, p_order => @reading_order, p_after_event_id => sqlc.narg(after_event_id),
  p_after_version => sqlc.narg(after_version), p_limit => @row_limit, p_options => @options);

-- name: EventIDs :many
select rewind.event_id(
  p_time => e.happened_at, p_rank => e.rank, p_tree => @tree, p_stream => e.stream, p_type => e.event_type,
  p_payload => e.payload, p_metadata => e.metadata, p_options => @options)::uuid as event_id
from (
  select
    generate_subscripts(@times::text[], 1) as n,
    unnest(@times::text[])::timestamptz as happened_at,
    unnest(@ranks::int[]) as rank,
    unnest(@streams::text[]) as stream,
    unnest(@types::text[]) as event_type,
    nullif(unnest(@payloads::text[]), '')::jsonb as payload,
    nullif(unnest(@metadata::text[]), '')::jsonb as metadata
) e
order by e.n;
