package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rewindpg/rewind"
)

const copyText = "COPY of the same columns, binary"

func feedGo(ctx context.Context, e *env) ([]Result, error) {
	return e.compareFeed(ctx, "feed", func(ctx context.Context, tree string) (int, error) {
		n := 0
		for _, err := range rewind.Subscribe(ctx, e.pool, tree, rewind.Initial) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

// feedSQL reads page by page, as a client in any language does.
func feedSQL(ctx context.Context, e *env) ([]Result, error) {
	var results []Result
	for _, r := range []struct {
		name string
		page int
	}{{"feed_sql", 5000}, {"feed_sql_1000", 1000}} {
		result, err := e.compareFeed(ctx, r.name, func(ctx context.Context, tree string) (int, error) { return e.readPages(ctx, tree, r.page) })
		if err != nil {
			return nil, err
		}
		results = append(results, result...)
	}
	return results, nil
}

// readPages reads a tree's feed with read_feed and returns how many records it has.
func (e *env) readPages(ctx context.Context, tree string, page int) (n int, err error) {
	var cursor json.RawMessage
	for {
		rows, err := e.pool.Query(ctx, `select * from rewind.read_feed(p_tree => $1, p_cursor => $2, p_limit => $3)`, tree, cursor, page)
		if err != nil {
			return n, err
		}
		last := len(rows.FieldDescriptions()) - 1
		read := 0
		for rows.Next() {
			read++
			if values := rows.RawValues(); values[last] != nil {
				cursor = slices.Clone(values[last]) // text: pgx reads jsonb so
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return n, err
		}
		if read == 0 {
			return n, nil
		}
		n += read
	}
}

// feedFirst compares how long the first record of a long feed takes with a round trip to the database.
func feedFirst(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.filled(ctx, logShape{events: e.scale.events, perStream: longEach})
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds,
		e.typical(func(ctx context.Context) error {
			for _, err := range rewind.Subscribe(ctx, e.pool, tree, rewind.Initial) {
				return err
			}
			return errors.New("the feed is empty")
		}),
		e.typical(func(ctx context.Context) error { return e.exec(ctx, `select 1`) }))
	if err != nil {
		return nil, err
	}
	return []Result{beside("feed_first", "ms", "select 1", values, baselines)}, nil
}

// feedLast compares reading the last records of a long feed with reading the last ones of a short feed.
func feedLast(ctx context.Context, e *env) ([]Result, error) {
	const last = 1000
	// readLast is a reader of the last records of a tree with so many events. They are of as many streams.
	readLast := func(events, perStream int) (measurement, error) {
		tree, err := e.filled(ctx, logShape{events: events, perStream: perStream})
		if err != nil {
			return nil, err
		}
		n := 0
		var from rewind.Cursor
		for record, err := range rewind.Subscribe(ctx, e.pool, tree, rewind.Initial) {
			if err != nil {
				return nil, err
			}
			if n++; n == events-last {
				from = record.Cursor()
			}
		}
		return e.typical(func(ctx context.Context) error {
			n := 0
			for _, err := range rewind.Subscribe(ctx, e.pool, tree, from) {
				if err != nil {
					return err
				}
				n++
			}
			if n != last {
				return fmt.Errorf("%d records read of the last %d", n, last)
			}
			return nil
		}), nil
	}
	long, err := readLast(e.scale.events, longEach)
	if err != nil {
		return nil, err
	}
	short, err := readLast(2*last, 2)
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds, long, short)
	if err != nil {
		return nil, err
	}
	return []Result{beside("feed_last", "ms", fmt.Sprintf("of %d, not %d", 2*last, e.scale.events), values, baselines)}, nil
}

// compareFeed compares reading all of a tree's feed with a COPY of the same columns, in no order.
func (e *env) compareFeed(ctx context.Context, name string, read func(ctx context.Context, tree string) (int, error)) ([]Result, error) {
	tree, err := e.filled(ctx, logShape{events: e.scale.events, perStream: longEach})
	if err != nil {
		return nil, err
	}
	rate := func(read func(ctx context.Context, tree string) (int, error)) measurement {
		return func(ctx context.Context) (float64, error) {
			begin := time.Now()
			n, err := read(ctx, tree)
			if err == nil && n != e.scale.events {
				err = fmt.Errorf("%d records read of %d", n, e.scale.events)
			}
			return float64(n) / time.Since(begin).Seconds(), err
		}
	}
	values, baselines, err := e.compare(ctx, e.scale.longRounds, rate(read), rate(e.copyLog))
	if err != nil {
		return nil, err
	}
	return []Result{beside(name, "records/s", copyText, values, baselines)}, nil
}

// copyLog copies a tree's records to nowhere.
func (e *env) copyLog(ctx context.Context, tree string) (int, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var id int
	if err := conn.QueryRow(ctx, `select tree_id from rewind.trees where tree_name = $1`, tree).Scan(&id); err != nil {
		return 0, err
	}
	tag, err := conn.Conn().PgConn().CopyTo(ctx, io.Discard, fmt.Sprintf(`
		copy (
		  select w.wal_partition, wal_offset, hlc, w.stream_id, stream_version, event_id, kind, mode, event_type, payload, metadata, delta, end_key,
		    origin_cluster, origin_hlc, appended_at, tenant_id, stream_key
		  from rewind.wal w
		  join rewind.streams s on s.stream_id = w.stream_id
		  where w.tree_id = %d
		) to stdout (format binary)`, id))
	return int(tag.RowsAffected()), err
}
