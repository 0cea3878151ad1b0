-- name: CurrentFeedCursor :one
select rewind.current_feed_cursor(p_tree => @tree)::jsonb as feed_cursor;

-- name: OldestFeedCursor :one
select rewind.oldest_feed_cursor(p_tree => @tree)::jsonb as feed_cursor;

-- name: FeedCursorAt :one
select rewind.feed_cursor_at(p_tree => @tree, p_time => sqlc.narg(at_time), p_hlc => sqlc.narg(at_hlc))::jsonb as feed_cursor;

-- name: FeedRanges :many
select s.store_epoch, pg_is_in_recovery()::boolean as is_standby, r.*
from rewind._feed_ranges(p_tree => @tree, p_cursor => @feed_cursor, p_until => null) r
cross join rewind.settings s
order by r.wal_partition;

-- name: StreamNames :many
select * from rewind._stream_names(p_stream_ids => @stream_ids::uuid[]);
