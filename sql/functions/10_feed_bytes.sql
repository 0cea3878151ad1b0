-- What a record takes on a page: payload, metadata and delta as stored.
create or replace function rewind._feed_bytes(p_payload jsonb, p_metadata jsonb, p_delta bytea) returns int
  language sql stable parallel safe security invoker
  return coalesce(pg_column_size(p_payload), 0) + coalesce(pg_column_size(p_metadata), 0) + coalesce(pg_column_size(p_delta), 0);

comment on function rewind._feed_bytes(jsonb, jsonb, bytea) is 'What a record takes on a page of the feed.';
