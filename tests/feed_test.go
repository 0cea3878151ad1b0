package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

// spot is where a record of the feed stands.
type spot struct {
	HLC       int64
	Partition int
	Offset    int64
}

func newFeed(t testing.TB, partitions int) *pgxpool.Pool {
	t.Helper()
	pool := testdb.New(t)
	createTree(t, pool, partitions)
	return pool
}

func createTree(t testing.TB, pool *pgxpool.Pool, partitions int) {
	t.Helper()
	if _, err := pool.Exec(ctxOf(t), `select from rewind.create_tree('t', $1)`, partitions); err != nil {
		t.Fatal(err)
	}
}

// appendSome appends n events, one of each type, each to a stream of its own.
func appendSome(t testing.TB, db rewind.DBTX, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		events := []rewind.NewEvent{{Type: fmt.Sprint("type", i%3), Payload: i}}
		if _, err := rewind.Append(ctxOf(t), db, "t", fmt.Sprint("s", i), events); err != nil {
			t.Fatal(err)
		}
	}
}

// sqlPage is a page of read_feed.
func sqlPage(t testing.TB, db rewind.DBTX, cursor, until any, limit int, filter string) (page []spot, next json.RawMessage) {
	t.Helper()
	rows, err := db.Query(ctxOf(t), `
		select hlc, wal_partition, wal_offset, next_cursor from rewind.read_feed('t', $1, $2, $3, p_filter => $4)`, cursor, until, limit, filter)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var s spot
		if next != nil {
			t.Error("a row before the last one of the page has a cursor")
		}
		if err := rows.Scan(&s.HLC, &s.Partition, &s.Offset, &next); err != nil {
			t.Fatal(err)
		}
		page = append(page, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(page) > 0 && next == nil {
		t.Error("the last row of the page has no cursor")
	}
	return page, next
}

// sqlFeed reads a feed in pages.
func sqlFeed(t testing.TB, db rewind.DBTX, cursor, until any, limit int, filter string) (all []spot) {
	t.Helper()
	for {
		page, next := sqlPage(t, db, cursor, until, limit, filter)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		cursor = next
	}
}

func spots(t testing.TB, records iter.Seq2[rewind.Record, error]) (all []spot) {
	t.Helper()
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, spot{r.HLC, r.Partition, r.Offset})
	}
	return all
}

// wholeLog is the feed as the log has it, read without any merge.
func wholeLog(t testing.TB, db rewind.DBTX) []spot {
	t.Helper()
	rows, err := db.Query(ctxOf(t), `
		select w.hlc, w.wal_partition, w.wal_offset from rewind.wal w join rewind.trees t using (tree_id)
		where t.tree_name = 't' order by w.hlc, w.wal_partition`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[spot])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFeedHasEverythingInOrder(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 5, 64} {
		pool := newFeed(t, partitions)
		for i := range 4 {
			batch := make([]rewind.StreamEvent, 700)
			for j := range batch {
				// One stream is as busy as all others together.
				batch[j] = rewind.StreamEvent{Stream: fmt.Sprint("s", j%2*j), NewEvent: rewind.NewEvent{Type: fmt.Sprint("type", i)}}
			}
			if _, err := rewind.AppendBatch(t.Context(), pool, "t", batch); err != nil {
				t.Fatal(err)
			}
		}
		want := wholeLog(t, pool)
		if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", rewind.Initial)); !slices.Equal(got, want) {
			t.Errorf("%d partitions: the feed in Go has %d records, the log %d, or another order", partitions, len(got), len(want))
		}
		for _, limit := range []int{7, 1000, 100000} {
			if got := sqlFeed(t, pool, nil, nil, limit, `{}`); !slices.Equal(got, want) {
				t.Errorf("%d partitions, pages of %d: the feed in SQL has %d records, the log %d, or another order", partitions, limit, len(got), len(want))
			}
		}
	}
}

func TestFeedResumesAfterAnyRecord(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 3)
	appendSome(t, pool, 0, 40)
	until, err := rewind.CurrentCursor(t.Context(), pool, "t")
	if err != nil {
		t.Fatal(err)
	}
	for filter, opts := range map[string][]rewind.Option{
		`{}`:                                  nil,
		`{"event_types": ["type1", "type2"]}`: {rewind.EventTypes("type1", "type2")},
		`{"key_prefix": "s1"}`:                {rewind.KeyPrefix("s1")},
	} {
		all := spots(t, rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, opts...))
		if len(all) < 10 {
			t.Errorf("%s: %d records", filter, len(all))
		}
		if diff := cmp.Diff(all, sqlFeed(t, pool, nil, nil, 4, filter)); diff != "" {
			t.Errorf("%s: feed in Go and SQL (-Go +SQL):\n%s", filter, diff)
		}
		n := 0
		for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, opts...) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if diff := cmp.Diff(all[n:], spots(t, rewind.Subscribe(t.Context(), pool, "t", r.Cursor(), opts...)), cmp.Transformer("", emptyAsNil)); diff != "" {
				t.Errorf("%s: after record %d in Go (-want +got):\n%s", filter, n, diff)
			}
			if diff := cmp.Diff(all[n:], sqlFeed(t, pool, r.Cursor(), until, 3, filter), cmp.Transformer("", emptyAsNil)); diff != "" {
				t.Errorf("%s: after record %d in SQL (-want +got):\n%s", filter, n, diff)
			}
		}
	}

	// The cursor of a row of a filtered page is exact: without the filter nothing is missing after it.
	page, next := sqlPage(t, pool, nil, nil, 5, `{"event_types": ["type2"]}`)
	log := wholeLog(t, pool)
	rest := log[slices.Index(log, page[len(page)-1])+1:]
	if diff := cmp.Diff(rest, sqlFeed(t, pool, next, nil, 100, `{}`)); diff != "" {
		t.Errorf("after a page that was filtered (-want +got):\n%s", diff)
	}
}

func emptyAsNil(s []spot) []spot {
	if len(s) == 0 {
		return nil
	}
	return s
}

func TestFeedEndsAtTheHeadsOfTheCall(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 4)
	appendSome(t, pool, 0, 10)
	records := rewind.Subscribe(t.Context(), pool, "t", rewind.Initial)
	current, err := rewind.CurrentCursor(t.Context(), pool, "t")
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, pool, 10, 10)
	if n := len(spots(t, records)); n != 10 {
		t.Errorf("%d records, want the 10 of before the call", n)
	}
	if n := len(spots(t, records)); n != 10 {
		t.Errorf("%d records the second time, want the 10 of before the call", n)
	}
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", current))); n != 10 {
		t.Errorf("%d records after the current cursor, want the 10 of after it", n)
	}
	if page, _ := sqlPage(t, pool, nil, current, 100, `{}`); len(page) != 10 {
		t.Errorf("%d records up to the current cursor, want 10", len(page))
	}
	if len(current.Offsets()) != 4 {
		t.Errorf("the current cursor names %d partitions of 4", len(current.Offsets()))
	}
}

func TestFeedOfUncommittedAppends(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 8)
	open, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(context.Background())
	appendSome(t, open, 0, 1)
	var at rewind.Cursor
	seen := 0
	read := func() {
		for r, err := range rewind.Subscribe(t.Context(), pool, "t", at) {
			if err != nil {
				t.Fatal(err)
			}
			at, seen = r.Cursor(), seen+1
		}
	}
	other := 1
	for partitionOf(t, pool, other) == partitionOf(t, pool, 0) {
		other++
	}
	appendSome(t, pool, other, 1)
	if read(); seen != 1 {
		t.Errorf("%d records while an append is open, want the 1 that is committed", seen)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if read(); seen != 2 {
		t.Errorf("%d records after all committed, want 2", seen)
	}
}

func partitionOf(t testing.TB, pool *pgxpool.Pool, stream int) int {
	t.Helper()
	return queryOne[int](t, pool, `select rewind._stream_partition(rewind.stream_id('t', $1), first_partition, partitions) from rewind.trees where tree_name = 't'`, fmt.Sprint("s", stream))
}

func TestFeedBytesBoundPages(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 4)
	text := make([]byte, 1500)
	for i := range 40 {
		for j := range text {
			text[j] = byte('a' + (i*7+j*j)%26)
		}
		if _, err := rewind.Append(t.Context(), pool, "t", fmt.Sprint("s", i), []rewind.NewEvent{{Type: "large", Payload: string(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	var all []spot
	var cursor json.RawMessage
	for pages := 0; ; pages++ {
		rows, err := pool.Query(t.Context(), `
			select hlc, wal_partition, wal_offset, next_cursor, pg_column_size(payload) from rewind.read_feed('t', $1, p_options => '{"max_bytes": 5000}')`, cursor)
		if err != nil {
			t.Fatal(err)
		}
		n, bytes := 0, 0
		for rows.Next() {
			var s spot
			var size int
			if err := rows.Scan(&s.HLC, &s.Partition, &s.Offset, &cursor, &size); err != nil {
				t.Fatal(err)
			}
			all, n, bytes = append(all, s), n+1, bytes+size
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if bytes > 5000 && n > 1 {
			t.Errorf("a page of %d records takes %d bytes", n, bytes)
		}
	}
	if diff := cmp.Diff(wholeLog(t, pool), all); diff != "" {
		t.Errorf("pages bounded by bytes (-want +got):\n%s", diff)
	}
}

// What is kept out of the table's rows is loaded when its turn comes, a few megabytes at a time, in whatever mode the connection is.
func TestFeedLargeRecords(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 4)
	const records = 40
	contents := func(i int) string { return noise(i, []int{10, 3 << 10, 1 << 20}[i%3]) }
	for i := range records {
		if _, err := rewind.Append(t.Context(), pool, "t", fmt.Sprint("s", i%7), []rewind.NewEvent{{Type: fmt.Sprint(i), Payload: contents(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, set := range map[string]func(*pgx.ConnConfig){
		"cache statement": func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement },
		"exec":            func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeExec },
		"simple protocol": func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol },
		"no caches": func(c *pgx.ConnConfig) {
			c.DefaultQueryExecMode, c.DescriptionCacheCapacity, c.StatementCacheCapacity = pgx.QueryExecModeExec, 0, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := pool.Config().ConnConfig.Copy()
			set(config)
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			seen := map[int]bool{}
			var from rewind.Cursor
			for range 2 { // the second goes on from the middle
				for r, err := range rewind.Subscribe(t.Context(), conn, "t", from) {
					if err != nil {
						t.Fatal(err)
					}
					var got string
					if err := json.Unmarshal(r.Payload, &got); err != nil {
						t.Fatal(err)
					}
					i, err := strconv.Atoi(r.Type)
					if err != nil || seen[i] || got != contents(i) {
						t.Errorf("record %q, %v, seen %v: %d bytes, want %d", r.Type, err, seen[i], len(got), len(contents(i)))
					}
					seen[i] = true
					if from = r.Cursor(); len(seen) == records/2 {
						break
					}
				}
			}
			if len(seen) != records {
				t.Errorf("%d records, want %d", len(seen), records)
			}
		})
	}
}

// A reader that has got used to many small records a read does not hold as many large ones, nor what is small only as it is stored.
func TestFeedSmallThenLargeRecords(t *testing.T) {
	t.Parallel()
	const small, large, repeats = 20_000, 400, 6_000
	pool := newFeed(t, 4)
	if _, err := pool.Exec(t.Context(), `
		select from (
		  select array_agg('s' || n % 100) as streams, array_agg(null::uuid) as ids, array_agg('e'::text) as types,
		    array_agg(to_jsonb(case when n < $1 then '' else repeat('compressed', $3) end || n)) as payloads
		  from generate_series(0, $1::int + $2 - 1) n
		) e
		cross join lateral (select count(*) from rewind.append_batch('t', e.streams, e.ids, e.types, e.payloads)) a`, small, large, repeats); err != nil {
		t.Fatal(err)
	}
	counting := &countingLoads{Pool: pool}
	var inOrder []int
	for r, err := range rewind.Subscribe(t.Context(), counting, "t", rewind.Initial) {
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal(r.Payload, &text); err != nil {
			t.Fatal(err)
		}
		number, was := strings.CutPrefix(text, strings.Repeat("compressed", repeats))
		n, err := strconv.Atoi(number)
		if err != nil || was != (n >= small) {
			t.Fatalf("record %d has a payload of %d bytes: %v", len(inOrder), len(text), err)
		}
		inOrder = append(inOrder, n)
	}
	slices.Sort(inOrder)
	if n := len(inOrder); n != small+large || inOrder[0] != 0 || inOrder[n-1] != n-1 {
		t.Errorf("%d records, want %d", n, small+large)
	}
	// 24 MB, of which a read holds 8.
	if n := counting.loads.Load(); n < 2 || n > 10 {
		t.Errorf("%d loads of large records", n)
	}
}

// What is small only as it is stored is loaded as many records at a time as fit as they are.
func TestFeedCompressedRecords(t *testing.T) {
	t.Parallel()
	const records, megabyte = 30, 1 << 20
	pool := newFeed(t, 1)
	for range records {
		if _, err := rewind.Append(t.Context(), pool, "t", "s", []rewind.NewEvent{{Type: "e", Payload: strings.Repeat("a", megabyte)}}); err != nil {
			t.Fatal(err)
		}
	}
	counting := &countingLoads{Pool: pool}
	n := 0
	for r, err := range rewind.Subscribe(t.Context(), counting, "t", rewind.Initial) {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Payload) < megabyte {
			t.Errorf("a payload of %d bytes", len(r.Payload))
		}
		n++
	}
	// Four of them take a little more than 4 MB; the last ones of a read may be fewer than three.
	if loads := counting.loads.Load(); n != records || loads < records/3 || loads > records/2 {
		t.Errorf("%d of %d records in %d loads, want %d to %d", n, records, loads, records/3, records/2)
	}
}

// A channel that is closed says nothing any more; Follow then asks as if it had none.
func TestFollowWithClosedWake(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 1)
	wake := make(chan struct{})
	close(wake)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	counting := &countingLoads{Pool: pool}
	for _, err := range rewind.Follow(ctx, counting, "t", rewind.Initial, rewind.WakeOn(wake)) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if n := counting.queries.Load(); n > 30 {
		t.Errorf("%d queries in a second", n)
	}
}

// countingLoads counts queries, and how often large records are loaded.
type countingLoads struct {
	*pgxpool.Pool
	queries, loads atomic.Int64
}

func (c *countingLoads) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.queries.Add(1)
	if strings.Contains(sql, "LoadFeedRecords") {
		c.loads.Add(1)
	}
	return c.Pool.Query(ctx, sql, args...)
}

// noise is a text that does not compress well.
func noise(seed, size int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

func TestFeedTrimmedBeforeLoaded(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 1)
	for i := range 12 {
		if _, err := rewind.Append(t.Context(), pool, "t", "s", []rewind.NewEvent{{Type: "e", Payload: noise(i, 1<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	end := queryOne[json.RawMessage](t, pool, `select rewind.current_feed_cursor('t')`)
	read := 0
	var failure error
	for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial) {
		if err != nil {
			failure = err
			break
		}
		if len(r.Payload) < 1<<20 {
			t.Errorf("record %d has a payload of %d bytes", read, len(r.Payload))
		}
		if read++; read == 1 {
			if _, err := pool.Exec(t.Context(), `select from rewind.trim_tree('t', $1)`, end); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(failure, rewind.ErrCursorTrimmed) {
		t.Errorf("after %d records: %v, want %v", read, failure, rewind.ErrCursorTrimmed)
	}
}

// Tombstones never appear, foreign records on demand, and all kinds as they are stored.
func TestFeedKindsAndOrigins(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 1)
	appendSome(t, pool, 0, 1)
	own := queryOne[uuid.UUID](t, pool, `select cluster_id from rewind.settings`)
	foreign := uuid.New()
	type row struct {
		kind      rewind.Kind
		mode      *int
		payload   *string
		delta     []byte
		endKey    *string
		origin    uuid.UUID
		originHLC *int64
	}
	ptr := func(n int) *int { return &n }
	text := func(s string) *string { return &s }
	zero := int64(0)
	for i, r := range []row{
		{kind: rewind.KindSet, mode: ptr(0), payload: text(`{"v": 1}`), origin: own},
		{kind: rewind.KindSet, mode: ptr(2), delta: []byte{0, 1, 255}, origin: own},
		{kind: rewind.KindDelete, mode: ptr(0), origin: own},
		{kind: rewind.KindDeleteRange, endKey: text("s9"), origin: own, originHLC: &zero},
		{kind: rewind.KindTombstone, origin: own},
		{kind: rewind.KindSet, mode: ptr(9), delta: []byte{7}, origin: foreign, originHLC: &zero},
		{kind: rewind.KindTombstone, origin: foreign},
	} {
		if _, err := pool.Exec(t.Context(), `
			insert into rewind.wal (tree_id, wal_partition, wal_offset, hlc, stream_id, stream_version, event_id, kind, mode, payload, delta, end_key,
			  origin_cluster, origin_hlc)
			select tree_id, wal_partition, wal_offset + 1, hlc + 1, stream_id, stream_version + 1, rewind.uuidv7(), $1, $2, $3::jsonb, $4, $5, $6, $7
			from rewind.wal where wal_offset = $8`,
			r.kind, r.mode, r.payload, r.delta, r.endKey, r.origin, r.originHLC, i); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		opts    []rewind.Option
		filter  string
		local   bool
		offsets []int64
	}{
		"default":               {nil, `{}`, true, []int64{0, 1, 2, 3, 4}},
		"without_local":         {[]rewind.Option{rewind.ExcludeLocalOrigin()}, `{}`, false, nil},
		"foreign":               {[]rewind.Option{rewind.FromOrigin(rewind.OriginForeign)}, `{"origin": "foreign"}`, true, []int64{6}},
		"foreign_without_local": {[]rewind.Option{rewind.FromOrigin(rewind.OriginForeign), rewind.ExcludeLocalOrigin()}, `{"origin": "foreign"}`, false, []int64{6}},
		"all":                   {[]rewind.Option{rewind.FromOrigin(rewind.OriginAll)}, `{"origin": "all"}`, true, []int64{0, 1, 2, 3, 4, 6}},
		"all_without_local":     {[]rewind.Option{rewind.FromOrigin(rewind.OriginAll), rewind.ExcludeLocalOrigin()}, `{"origin": "all"}`, false, []int64{6}},
		"kinds":                 {[]rewind.Option{rewind.Kinds(rewind.KindSet, rewind.KindTombstone)}, `{"kinds": [0, 5]}`, true, []int64{1, 2}},
		"types":                 {[]rewind.Option{rewind.EventTypes("type0")}, `{"event_types": ["type0"]}`, true, []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int64
			for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, c.opts...) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.Offset)
			}
			if !slices.Equal(got, c.offsets) {
				t.Errorf("offsets %v in Go, want %v", got, c.offsets)
			}
			rows, err := pool.Query(t.Context(), `select wal_offset from rewind.read_feed('t', p_include_local_origin => $1, p_filter => $2)`, c.local, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil || !slices.Equal(got, c.offsets) {
				t.Errorf("offsets %v in SQL, want %v (%v)", got, c.offsets, err)
			}
		})
	}

	records := map[int64]rewind.Record{}
	for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, rewind.FromOrigin(rewind.OriginAll)) {
		if err != nil {
			t.Fatal(err)
		}
		records[r.Offset] = r
	}
	if r := records[0]; r.Kind != rewind.KindEvent || r.Mode != nil || r.Type != "type0" || string(r.Payload) != "0" || r.StreamKey != "s0" || r.OriginCluster != own {
		t.Errorf("event: %+v", r)
	}
	if r := records[2]; r.Kind != rewind.KindSet || *r.Mode != 2 || r.Payload != nil || !slices.Equal(r.Delta, []byte{0, 1, 255}) {
		t.Errorf("Set with a delta: %+v", r)
	}
	if r := records[4]; r.Kind != rewind.KindDeleteRange || *r.EndKey != "s9" || *r.OriginHLC != 0 {
		t.Errorf("DeleteRange: %+v", r)
	}
	if r := records[6]; r.OriginCluster != foreign || *r.Mode != 9 {
		t.Errorf("foreign Set: %+v", r)
	}
	for filter := range map[string]bool{`{"origin": "mars"}`: true, `{"kinds": ["set"]}`: true, `{"event_types": "a"}`: true, `{"colour": "red"}`: true} {
		wantCode(t, pool, "22023", `select from rewind.read_feed('t', p_filter => $1)`, filter)
	}
}

func TestFeedCursors(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 4)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	testdb.SetClock(t, pool, now)
	appendSome(t, pool, 0, 10)
	testdb.Advance(t, pool, time.Hour)
	appendSome(t, pool, 10, 10)

	log := wholeLog(t, pool)
	for name, c := range map[string]struct {
		at   time.Time
		want int
	}{
		"before": {now.Add(-time.Hour), 20}, "first": {now, 20}, "between": {now.Add(time.Minute), 10}, "second": {now.Add(time.Hour), 10}, "after": {now.Add(2 * time.Hour), 0},
	} {
		at, err := rewind.CursorAt(t.Context(), pool, "t", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", at))); n != c.want {
			t.Errorf("at the time %s: %d records, want %d", name, n, c.want)
		}
	}
	for i, s := range log {
		at, err := rewind.CursorAtHLC(t.Context(), pool, "t", s.HLC)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.IndexFunc(log, func(o spot) bool { return o.HLC >= s.HLC })
		if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", at)); !slices.Equal(got, log[want:]) {
			t.Errorf("at the clock of record %d: %d records, want %d", i, len(got), len(log)-want)
		}
	}

	current, err := rewind.CurrentCursor(t.Context(), pool, "t")
	if err != nil {
		t.Fatal(err)
	}
	var read rewind.Cursor
	if err := json.Unmarshal([]byte(current.String()), &read); err != nil || read.String() != current.String() || !cmp.Equal(read.Offsets(), current.Offsets()) {
		t.Errorf("%v became %v in JSON (%v)", current, read, err)
	}
	if text, err := current.MarshalText(); err != nil || read.UnmarshalText(text) != nil || read.String() != current.String() {
		t.Errorf("%v became %v in text (%v)", current, read, err)
	}
	if err := json.Unmarshal([]byte(`null`), &read); err != nil || read.String() != "{}" {
		t.Errorf("null became %v (%v)", read, err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 4)
	appendSome(t, pool, 0, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wake := make(chan struct{})
	next, stop := iter.Pull2(rewind.Follow(ctx, pool, "t", rewind.Initial, rewind.WakeOn(wake), rewind.MaxPoll(time.Hour)))
	defer stop()
	seen := map[string]bool{}
	take := func(n int) {
		t.Helper()
		for range n {
			r, err, ok := next()
			if err != nil || !ok || seen[r.StreamKey] {
				t.Fatalf("%s, %v", r.StreamKey, err)
			}
			seen[r.StreamKey] = true
		}
	}
	take(5)
	go func() {
		// Only a follower that has nothing left and waits receives.
		wake <- struct{}{}
		if _, err := rewind.Append(t.Context(), pool, "t", "s5", []rewind.NewEvent{{Type: "later"}}); err != nil {
			t.Error(err)
		}
		select {
		case wake <- struct{}{}:
		case <-ctx.Done(): // it had looked by itself
		}
	}()
	take(1)
	cancel()
	if _, err, _ := next(); err == nil {
		t.Error("a cancelled follower goes on")
	}
}
