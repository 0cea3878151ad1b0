-- name: CurrentFeedCursor :one
select rewind.current_feed_cursor(p_tree => @tree)::jsonb as feed_cursor;

-- name: OldestFeedCursor :one
select rewind.oldest_feed_cursor(p_tree => @tree)::jsonb as feed_cursor;

-- name: FeedCursorAt :one
select rewind.feed_cursor_at(p_tree => @tree, p_time => sqlc.narg(at_time), p_hlc => sqlc.narg(at_hlc))::jsonb as feed_cursor;

-- name: FeedRanges :many
-- No joins, whose rows the planner would so overrate that it compiles the query.
select
  (select s.store_epoch from rewind.settings s where s.singleton)::uuid as store_epoch,
  (select t.tree_id from rewind.trees t where t.tree_name = @tree)::int as tree_id,
  r.*
from rewind._feed_ranges(p_tree => @tree, p_cursor => @feed_cursor, p_until => null) r
order by r.wal_partition;

-- name: LoadFeedRecords :many
select * from rewind._load_feed_records(p_tree_id => @tree_id, p_partitions => @partitions::int[], p_offsets => @offsets::bigint[]);

-- name: StreamNames :many
select * from rewind._stream_names(p_stream_ids => (@stream_ids::text[])::uuid[]);

-- name: CreateFeedConsumer :one
select * from rewind.create_feed_consumer(p_consumer => @consumer, p_tree => @tree, p_from => @from_cursor, p_options => @options);

-- name: ClaimFeedConsumer :one
select rewind.claim_feed_consumer(p_consumer => @consumer, p_owner => @owner)::bigint as token;

-- name: FeedConsumer :one
select t.tree_name, c.*
from rewind.feed_consumers c
join rewind.trees t on t.tree_id = c.tree_id
where c.consumer_name = @consumer;

-- name: AdvanceFeedConsumer :exec
select from rewind.advance_feed_consumer(p_consumer => @consumer, p_token => @token, p_cursor => @feed_cursor);

-- name: DropFeedConsumer :one
select rewind.drop_feed_consumer(p_consumer => @consumer)::boolean as dropped;

-- name: TrimTree :one
select * from rewind.trim_tree(p_tree => @tree, p_before => @before, p_options => @options);
