package tests

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/worker"
)

// moveTree moves tree "t" on to a number of partitions, be it the one that it has.
func moveTree(t testing.TB, pool *pgxpool.Pool, partitions int) {
	t.Helper()
	err := rewind.RepartitionTree(ctxOf(t), pool, "t", partitions)
	var e *rewind.Error
	if errors.As(err, &e) && e.Code == "22023" {
		if _, err := pool.Exec(ctxOf(t), `select from rewind.create_tree('next', $1)`, partitions); err != nil {
			t.Fatal(err)
		}
		err = rewind.RepointTree(ctxOf(t), pool, "t", "next")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMoveTree(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 4)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	testdb.SetClock(t, pool, noon)
	const events = `[{"event_id": "019c0000-0000-7000-8000-000000000001", "type": "x"}]`
	first := appendJSON(t, pool, "again", events)
	for i := range 40 {
		appendJSON(t, pool, fmt.Sprint("s", i%10), `[{"type": "x"}, {"type": "y"}]`)
	}
	last := queryOne[int64](t, pool, `select max(hlc) from rewind.wal`)

	testdb.SetClock(t, pool, noon.Add(-time.Hour)) // the log's clock runs on all the same
	moved := queryOne[string](t, pool, `select format('%s %s %s', generation, first_partition, partitions) from rewind.repartition_tree('t', 16)`)
	if moved != "2 4 16" {
		t.Errorf("generation, first partition and partitions: %s", moved)
	}
	for i := range 40 {
		for _, p := range appendJSON(t, pool, fmt.Sprint("s", i%20), `[{"type": "x"}, {"type": "y"}]`) {
			if p.WalPartition < 4 || p.WalPartition >= 20 || p.HLC <= last {
				t.Errorf("after the move an event went to %+v", p)
			}
		}
	}
	if got := appendJSON(t, pool, "again", events); got[0].WalPartition != first[0].WalPartition || got[0].WasNew {
		t.Errorf("an event of before the move came again, and got %+v", got)
	}
	wantCode(t, pool, "RW001", `select rewind.append_events('t', 's1', '[{"type": "x"}]', 3)`)
	if got := appendJSON(t, pool, "again", `[{"type": "z"}]`); got[0].StreamVersion != 2 {
		t.Errorf("the next event of a stream got %+v", got)
	}
	places, err := rewind.AppendBatch(t.Context(), pool, "t", []rewind.StreamEvent{{Stream: "s1", NewEvent: rewind.NewEvent{Type: "x"}}, {Stream: "new", NewEvent: rewind.NewEvent{Type: "x"}}})
	if err != nil || places[0].Partition < 4 || places[1].Partition < 4 {
		t.Errorf("a batch went to %+v (%v)", places, err)
	}
	wantDense(t, pool)
	if n := queryOne[int64](t, pool, `
		select count(*) from rewind.wal a join rewind.wal b using (stream_id)
		where a.stream_version < b.stream_version and (a.hlc >= b.hlc or a.wal_partition > b.wal_partition)`); n > 0 {
		t.Errorf("%d times something later stands before something earlier", n)
	}

	mustExec(t, pool, `select from rewind.create_tree('next', 3, '{"max_clock_skew": "7m"}')`)
	moved = queryOne[string](t, pool, `select format('%s %s %s %s %s', tree_name, generation, first_partition, partitions, options) from rewind.repoint_tree('t', 'next')`)
	if moved != `t 3 20 3 {"max_clock_skew": "7m"}` {
		t.Errorf("repointed: %s", moved)
	}
	wantCode(t, pool, "RW005", `select rewind.append_events('next', 's1', '[{"type": "x"}]')`)
	if got := appendJSON(t, pool, "again", `[{"type": "z"}]`); got[0].StreamVersion != 3 || got[0].WalPartition < 20 {
		t.Errorf("the next event of a stream got %+v", got)
	}
	wantDense(t, pool)
}

func TestMoveTreeErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 4})
	w.append("s", inOrder(3)...)
	w.exec(`select from rewind.create_tree('read', 4)`)
	w.exec(`select from rewind.create_perspective('q', 'read', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`select from rewind.create_tree('full', 4)`)
	w.exec(`select rewind.append_events('full', 's', '[{"type": "x"}]')`)
	w.exec(`select from rewind.create_tree('consumed', 4)`)
	w.exec(`select from rewind.create_feed_consumer('c', 'consumed')`)
	w.exec(`select from rewind.create_tree('held', 4, '{"skew_policy": "quarantine"}')`)
	w.exec(`select rewind.append_events('held', 's', jsonb_build_array(jsonb_build_object('type', 'x', 'time', '2100-01-01T00:00:00Z')))`)
	w.exec(`select from rewind.create_tree('empty', 4)`)
	for call, code := range map[string]string{
		`rewind.repartition_tree('nowhere', 8)`:                     "RW005",
		`rewind.repartition_tree('t', 4)`:                           "22023",
		`rewind.repartition_tree('t', 0)`:                           "22023",
		`rewind.repartition_tree('t', 1025)`:                        "22023",
		`rewind.repartition_tree('t', null)`:                        "22023",
		`rewind.repartition_tree('$system', 2)`:                     "22023",
		`rewind.repartition_tree('t', 8, '{"partitions": 1}')`:      "22023",
		`rewind.repartition_tree('t', 8, '{"timeout": "soon"}')`:    "22023",
		`rewind.repartition_tree('t', 8, '{"timeout": "-1s"}')`:     "22023",
		`rewind.repoint_tree('nowhere', 'empty')`:                   "RW005",
		`rewind.repoint_tree('t', 'nowhere')`:                       "RW005",
		`rewind.repoint_tree('t', 't')`:                             "22023",
		`rewind.repoint_tree('t', '$system')`:                       "22023",
		`rewind.repoint_tree('$system', 'empty')`:                   "22023",
		`rewind.repoint_tree('t', 'read')`:                          "RW019",
		`rewind.repoint_tree('t', 'full')`:                          "22023",
		`rewind.repoint_tree('t', 'consumed')`:                      "22023",
		`rewind.repoint_tree('t', 'held')`:                          "22023",
		`rewind.repoint_tree('t', 'empty', '{"timeout": "never"}')`: "22023",
	} {
		wantCode(t, w.pool, code, `select from `+call)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for _, call := range []string{`rewind.repartition_tree('t', 8)`, `rewind.repoint_tree('t', 'empty')`} {
			wantCode(t, begin(t, w.pool, pgx.TxOptions{IsoLevel: level}), "RW020", `select from `+call)
		}
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.tree_partitions where generation > 1 or end_offset is not null`); n > 0 {
		t.Errorf("after what was refused, %d partitions are not as they were", n)
	}
	w.catchUp()
	w.checkSettled()
}

// generation is how many generations of a tree end at or before a record's partition, where first are the first partitions of the later ones.
func generation(s spot, first ...int) int {
	n, _ := slices.BinarySearch(first, s.Partition+1)
	return n
}

// A reader goes on from any cursor, of whatever generation; consumers, times and trims go across moves.
func TestFeedOfMovedTree(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 3)
	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "t", rewind.Initial); err != nil {
		t.Fatal(err)
	}
	var ends []rewind.Cursor // of each generation
	for generation, partitions := range []int{3, 12, 5, 5} {
		if generation > 0 {
			moveTree(t, pool, partitions)
			ends = append(ends, currentCursor(t, pool)) // of the next generation, and empty
		}
		appendSome(t, pool, 0, 12)
		ends = append(ends, currentCursor(t, pool))
	}
	if diff := cmp.Diff([]int{5, 5}, []int{len(ends[len(ends)-1].Offsets()), len(ends[4].Offsets())}); diff != "" {
		t.Errorf("partitions of current cursors (-want +got):\n%s", diff)
	}
	want := wholeLog(t, pool)
	if len(want) != 48 {
		t.Fatalf("%d records", len(want))
	}
	if !slices.IsSortedFunc(want, func(a, b spot) int { return generation(a, 3, 15, 20) - generation(b, 3, 15, 20) }) {
		t.Error("the log's clock does not rise over the generations")
	}
	for name, opts := range map[string][]rewind.Option{`{}`: nil, `{"event_types": ["type2"]}`: {rewind.EventTypes("type2")}} {
		all := spots(t, rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, opts...))
		if name == `{}` && !slices.Equal(all, want) {
			t.Errorf("the feed has %d records, the log %d, or another order", len(all), len(want))
		}
		n := 0
		for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial, opts...) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", r.Cursor(), opts...)); !slices.Equal(got, all[n:]) {
				t.Errorf("%s: %d records after record %d in Go, want %d", name, len(got), n, len(all)-n)
			}
			if got := sqlFeed(t, pool, r.Cursor(), ends[len(ends)-1], 5, name); !slices.Equal(got, all[n:]) {
				t.Errorf("%s: %d records after record %d in SQL, want %d", name, len(got), n, len(all)-n)
			}
			if name != `{}` {
				continue
			}
			at, err := rewind.CursorAtHLC(t.Context(), pool, "t", r.HLC)
			if err != nil {
				t.Fatal(err)
			}
			if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", at)); len(got) == 0 || got[0].HLC != r.HLC {
				t.Errorf("from the clock of record %d: %v", n, got)
			}
		}
	}
	// The end of a generation and the beginning of the next one are the same place.
	for i, rest := range []int{36, 36, 24, 24, 12, 12, 0} {
		if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", ends[i])); !slices.Equal(got, want[48-rest:]) {
			t.Errorf("%d records after end %d, want %d", len(got), i, rest)
		}
		if got := sqlFeed(t, pool, nil, ends[i], 7, `{}`); !slices.Equal(got, want[:48-rest]) {
			t.Errorf("%d records before end %d, want %d", len(got), i, 48-rest)
		}
	}

	c := claim(t, pool, "a")
	if err := c.Advance(t.Context(), pool, ends[2]); err != nil {
		t.Error(err)
	}
	if err := c.Advance(t.Context(), pool, ends[0]); err == nil {
		t.Error("a consumer moved back into the generation before")
	}
	if trimmed := trim(t, pool, ends[len(ends)-1]); !slices.Equal(trimmed.HeldBy, []string{"reports"}) {
		t.Errorf("trim: %+v", trimmed)
	}
	oldest, err := rewind.OldestCursor(t.Context(), pool, "t")
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]rewind.Cursor{"the oldest place": oldest, "the consumer's": claim(t, pool, "a").Cursor} {
		if got := spots(t, rewind.Subscribe(t.Context(), pool, "t", at)); !slices.Equal(got, want[24:]) {
			t.Errorf("after a trim, from %s: %d records, want 24", what, len(got))
		}
	}
	wantFeedError(t, pool, rewind.Initial, "RW010", rewind.ErrCursorTrimmed)
	if got := appendJSON(t, pool, "s1", `[{"type": "x"}]`); got[0].StreamVersion != 5 {
		t.Errorf("after a trim the next event of a stream got %+v", got)
	}
}

// An append that waits for its partition's lock while the tree moves goes to where the tree is then.
func TestAppendsThatWaitForMove(t *testing.T) {
	t.Parallel()
	const batch = `select wal_partition from rewind.append_batch('t', array['s', 'r'], array[null, null]::uuid[], array['x', 'x'], array[null, null]::jsonb[])`
	appends := map[string]string{
		"one":   `select wal_partition from rewind.append_events('t', 's', '[{"type": "x"}]')`,
		"given": `select wal_partition from rewind.append_events('t', 's', '[{"type": "x", "time": 1700000000000}]', 0)`,
		"two":   `select wal_partition from rewind.append_events('t', 's', '[{"type": "x"}, {"type": "y"}]')`,
		"batch": batch,
		"after_locking": `with locked as materialized (select rewind.lock_streams('t', array['s', 'r']))
			select e.wal_partition from locked, lateral rewind.append_events('t', 'r', '[{"type": "x"}]') e`,
	}
	for name, sql := range appends {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " commits ", commits), func(t *testing.T) {
				t.Parallel()
				pool := newLog(t, 2)
				mover := begin(t, pool, pgx.TxOptions{})
				if err := rewind.RepartitionTree(t.Context(), mover, "t", 5); err != nil {
					t.Fatal(err)
				}
				tx := begin(t, pool, pgx.TxOptions{})
				type result struct {
					partitions []int32
					err        error
				}
				done := make(chan result, 1)
				go func() {
					rows, _ := tx.Query(context.Background(), sql)
					partitions, err := pgx.CollectRows(rows, pgx.RowTo[int32])
					done <- result{partitions, err}
				}()
				waitUntilBlocked(t, pool, tx.Conn().PgConn().PID())
				var err error
				if commits {
					err = mover.Commit(t.Context())
				} else {
					err = mover.Rollback(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				r := <-done
				if r.err != nil {
					t.Fatal(r.err)
				}
				commit(t, tx)
				for _, p := range r.partitions {
					if (p >= 2) != commits {
						t.Errorf("an event went to partition %d", p)
					}
				}
				wantDense(t, pool)
				if got := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", rewind.Initial))); got != len(r.partitions) {
					t.Errorf("%d records in the feed, want %d", got, len(r.partitions))
				}
			})
		}
	}
}

// Appends that wait while their tree gives its log to another one and is made anew, all in one transaction, go to the new one, or say that
// they are to be tried again.
func TestAppendsThatWaitForAnotherTree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, code string }{
		"one":   {`select from rewind.append_events('t', 's', '[{"type": "x"}]')`, ""},
		"two":   {`select from rewind.append_events('t', 's', '[{"type": "x"}, {"type": "y"}]')`, "40001"},
		"batch": {`select from rewind.append_batch('t', '{s,r}', '{null,null}', '{x,y}', '{1,2}')`, "40001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newLog(t, 2)
			mustExec(t, pool, `select from rewind.create_tree('mover')`)
			mover := begin(t, pool, pgx.TxOptions{})
			for _, sql := range []string{`select from rewind.repoint_tree('mover', 't')`, `select from rewind.create_tree('t', 2)`} {
				if _, err := mover.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			tx := begin(t, pool, pgx.TxOptions{})
			done := make(chan error, 1)
			go func() {
				_, err := tx.Exec(context.Background(), c.sql)
				done <- err
			}()
			waitUntilBlocked(t, pool, tx.Conn().PgConn().PID())
			commit(t, mover)
			err := <-done
			var pgErr *pgconn.PgError
			if c.code == "" && err != nil || c.code != "" && (!errors.As(err, &pgErr) || pgErr.Code != c.code) {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if err == nil {
				commit(t, tx)
				tree := queryOne[string](t, pool, `select tree_name from rewind.wal join rewind.trees using (tree_id) where kind = 6`)
				if tree != "t" {
					t.Errorf("the event is in tree %q", tree)
				}
			}
		})
	}
}

// A transaction whose snapshot is older than the move does not see it: its appends must not go to partitions that have ended.
func TestAppendsWithSnapshotOfBeforeMove(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for name, sql := range map[string]string{
			"events": `select rewind.append_events('t', 's', '[{"type": "x"}]')`,
			"batch":  `select rewind.append_batch('t', array['s'], array[null]::uuid[], array['x'], array[null]::jsonb[])`,
			"lock":   `select rewind.lock_streams('t', array['s'])`,
		} {
			t.Run(fmt.Sprint(level, " ", name), func(t *testing.T) {
				t.Parallel()
				pool := newLog(t, 2)
				mustExec(t, pool, `select from rewind.create_tree('next', 7)`)
				tx := begin(t, pool, pgx.TxOptions{IsoLevel: level})
				if _, err := tx.Exec(t.Context(), `select 1 from rewind.trees`); err != nil {
					t.Fatal(err)
				}
				moveTree(t, pool, 5)
				wantCode(t, tx, "40001", sql)

				tx = begin(t, pool, pgx.TxOptions{IsoLevel: level})
				if _, err := tx.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
				commit(t, tx)

				// And into a tree that is none any more.
				tx = begin(t, pool, pgx.TxOptions{IsoLevel: level})
				if _, err := tx.Exec(t.Context(), `select 1 from rewind.trees`); err != nil {
					t.Fatal(err)
				}
				if err := rewind.RepointTree(t.Context(), pool, "t", "next"); err != nil {
					t.Fatal(err)
				}
				wantCode(t, tx, "40001", `select rewind.append_events('next', 's', '[{"type": "x"}]')`)
			})
		}
	}
}

// While a transaction that appended stays open, a move waits for it, and appends to other partitions go on.
func TestMoveWaitsForOpenAppend(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 4)
	first, last := streamIn(t, pool, 0), streamIn(t, pool, 3)
	open := begin(t, pool, pgx.TxOptions{})
	appendJSON(t, open, last, `[{"type": "x"}]`)
	wantCode(t, pool, "55P03", `select from rewind.repartition_tree('t', 8, '{"timeout": "0s"}')`)
	if n := queryOne[int64](t, pool, `select count(*) from pg_locks l, pg_database d
		where l.locktype = 'advisory' and l.database = d.oid and d.datname = current_database()`); n != 1 {
		t.Errorf("after a move that gave up, %d advisory locks are held, want the open append's", n)
	}
	tx := begin(t, pool, pgx.TxOptions{})
	appendJSON(t, tx, last+"x", `[]`)
	done := make(chan error, 1)
	go func() { done <- rewind.RepartitionTree(context.Background(), pool, "t", 8) }()
	waits := `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'advisory')`
	n := 0
	for tries := 0; tries < 3; { // several rounds of the move
		began := time.Now()
		appendJSON(t, pool, first, `[{"type": "x"}]`)
		n++
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("an append to another partition took %v", took)
		}
		if queryOne[bool](t, pool, waits) {
			tries++
			eventually(t, func() bool { return !queryOne[bool](t, pool, waits) })
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the move did not wait: %v", err)
	default:
	}
	commit(t, open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := appendJSON(t, pool, last, `[{"type": "x"}]`); got[0].WalPartition < 4 || got[0].StreamVersion != 2 {
		t.Errorf("after the move an event went to %+v", got)
	}
	if got := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", rewind.Initial))); got != n+2 {
		t.Errorf("%d records in the feed, want %d", got, n+2)
	}
}

// A move whose session ends in the middle has not happened.
func TestMoveThatIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 2})
	w.append("s", inOrder(3)...)
	before := currentCursor(t, w.pool)
	mover := begin(t, w.pool, pgx.TxOptions{})
	if err := rewind.RepartitionTree(t.Context(), mover, "t", 5); err != nil {
		t.Fatal(err)
	}
	w.exec(`select pg_terminate_backend($1)`, int32(mover.Conn().PgConn().PID()))
	w.append("s", testEvent{at: 100, v: 1})
	if after := currentCursor(t, w.pool); len(after.Offsets()) != 2 || len(spots(t, rewind.Subscribe(t.Context(), w.pool, "t", before))) != 1 {
		t.Errorf("after a move that was killed the cursor is %v", after)
	}
	moveTree(t, w.pool, 5)
	w.append("s", testEvent{at: 200, v: 2})
	w.catchUp()
	w.checkSettled()
}

// Perspectives read a stream's records in the order of its versions: nothing of a new partition before the old ones are read to their ends.
func TestPerspectiveOfMovedTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 2, options: map[string]any{"inline_rewind_events": 256}})
	w.append("s", inOrder(4)...)
	w.append("r", inOrder(4)...)
	moveTree(t, w.pool, 3)
	w.append("s", testEvent{at: 1000, v: 1}, testEvent{at: 15, v: 2}) // the second one is late
	w.append("new", testEvent{at: 1000, v: 1})
	moveTree(t, w.pool, 1)
	last := w.appendAt("s", testEvent{at: 2000, v: 3})

	batch := func(partition int) int64 {
		return queryOne[int64](t, w.pool, `select coalesce(sum(records_read), -1)::bigint from rewind.apply_perspective_batch('p', $1)`, partition)
	}
	work := func() []int32 {
		return queryOne[[]int32](t, w.pool, `select coalesce(array_agg(wal_partition order by wal_partition), '{}') from rewind._find_work(null, '{}') where wal_partition is not null`)
	}
	applied := func() bool {
		return queryOne[bool](t, w.pool, `select rewind.wait_for_perspective('p', jsonb_build_object($1::text, $2::bigint), '0s')`, fmt.Sprint(last.WalPartition), last.WalOffset)
	}
	for partition := 5; partition >= 2; partition-- {
		if n := batch(partition); n != -1 {
			t.Errorf("partition %d was read before the ones before it: %d records", partition, n)
		}
	}
	for _, partition := range work() {
		if partition > 1 {
			t.Errorf("partition %d is to be read", partition)
		}
	}
	w.checkSound()
	for partition := range 5 {
		batch(partition)
		w.checkSound()
		if applied() {
			t.Errorf("the last record counts as applied after partition %d", partition)
		}
	}
	if diff := cmp.Diff([]int32{5}, work()); diff != "" {
		t.Errorf("partitions to be read (-want +got):\n%s", diff)
	}
	if n := batch(5); n != 1 || !applied() {
		t.Errorf("partition 5: %d records, applied %t", n, applied())
	}
	w.checkSettled()

	// People's actions on a stream keep the live path off whichever of its partitions it reads.
	for _, sql := range []string{`select rewind.request_perspective_rewind('p', 's')`, `select rewind.reset_perspective_cursor('p', 's')`} {
		w.exec(sql)
		w.append("s", testEvent{at: 3, v: 5})
		w.catchUp()
		w.checkSettled()
	}
	// One that is created now reads the generations one after another, too.
	w.exec(`select from rewind.create_perspective('q', 't', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`call rewind.catch_up('q')`)
	if n := queryOne[int64](t, w.pool, `select count(*) from lens.p a full join lens.q b using (stream_id) where a.model is distinct from b.model`); n > 0 {
		t.Errorf("%d models differ", n)
	}
}

// appendAt appends an event and returns its place.
func (w *world) appendAt(stream string, e testEvent) (p place) {
	w.t.Helper()
	w.append(stream, e)
	rows, err := w.pool.Query(ctxOf(w.t), `select event_id, wal_partition, wal_offset, stream_version, hlc, true as was_new
		from rewind.wal where stream_id = rewind.stream_id('t', $1) order by stream_version desc limit 1`, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	if p, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[place]); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// Writers, workers and a follower go on while a tree moves to and fro: what the follower saw is what was committed, each once and in order,
// every model is the fold of its stream, and no append waited for long.
func TestMovesInAStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 16, options: map[string]any{"inline_rewind_events": 5}})
	stops := []func() error{start(t, newWorker(t, w, worker.Config{})), start(t, newWorker(t, w, worker.Config{}))}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var committed, total atomic.Int64
	var writing, others sync.WaitGroup
	begin := time.Now()
	for i := range 6 {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
			for ctx.Err() == nil {
				options := pgx.TxOptions{}
				if r.IntN(4) == 0 {
					options.IsoLevel = pgx.RepeatableRead
				}
				tx, err := w.pool.BeginTx(t.Context(), options)
				if err != nil {
					t.Error(err)
					return
				}
				if r.IntN(3) == 0 { // its snapshot gets old
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				}
				events := make([]rewind.NewEvent, 1+r.IntN(3))
				for j := range events {
					ms := int(time.Since(begin).Milliseconds())
					if r.IntN(5) == 0 {
						ms -= r.IntN(1000)
					}
					events[j] = rewind.NewEvent{ID: at(ms), Type: "happened", Payload: map[string]any{"v": r.IntN(100000)}}
				}
				_, err = rewind.Append(t.Context(), tx, "t", fmt.Sprint("s", r.IntN(60)), events)
				rolledBack := err != nil || r.IntN(5) == 0
				if rolledBack {
					if e := tx.Rollback(t.Context()); e != nil {
						t.Error(e)
					}
				} else if err = tx.Commit(t.Context()); err == nil {
					committed.Add(int64(len(events)))
				}
				var refused *pgconn.PgError
				if err != nil && !(errors.As(err, &refused) && refused.Code == "40001") {
					t.Error(err)
					return
				}
			}
		})
	}
	var followed []spot
	others.Go(func() {
		for r, err := range rewind.Follow(t.Context(), w.pool, "t", rewind.Initial) {
			if err != nil {
				t.Error(err)
				return
			}
			followed = append(followed, spot{r.HLC, r.Partition, r.Offset})
			if int64(len(followed)) == total.Load() {
				return
			}
		}
	})
	others.Go(func() {
		for ctx.Err() == nil {
			if found := w.verify(); len(found) > 0 {
				t.Errorf("verify_perspective in the storm: %v", found)
				return
			}
		}
	})
	for i, partitions := range []int{64, 64, 16, 3, 64} { // the second one is a repointing
		if i == 2 { // built, on a tree that has moved, while it moves on
			w.exec(`select from rewind.create_perspective('midway', 't', 'app.chain(jsonb, rewind.event)')`)
		}
		enough := committed.Load() + 100 + rand.Int64N(200)
		eventually(t, func() bool { return committed.Load() > enough || t.Failed() })
		moveTree(t, w.pool, partitions)
	}
	enough := committed.Load() + 100
	eventually(t, func() bool { return committed.Load() > enough || t.Failed() })
	cancel()
	writing.Wait()
	total.Store(committed.Load() + 1)
	w.append("the last", testEvent{at: 1_000_000, v: 1})
	others.Wait()
	if t.Failed() {
		return
	}
	if !slices.IsSortedFunc(followed, func(a, b spot) int {
		return generation(a, 16, 80, 144, 160, 163) - generation(b, 16, 80, 144, 160, 163)
	}) {
		t.Error("the follower went back to a generation of before")
	}
	slices.SortFunc(followed, func(a, b spot) int { return stdcmp.Or(stdcmp.Compare(a.HLC, b.HLC), a.Partition-b.Partition) })
	if log := wholeLog(t, w.pool); !slices.Equal(followed, log) || int64(len(log)) != total.Load() {
		t.Errorf("%d records were seen, %d committed, %d are in the log; each once: %t", len(followed), total.Load(), len(log), slices.Equal(followed, log))
	}
	eventually(t, func() bool {
		return queryOne[int64](t, w.pool, `select count(*) from rewind._find_work(null, '{}')`)+
			queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2`) == 0
	})
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	wantDense(t, w.pool)
	w.exec(`select from rewind.create_perspective('afterwards', 't', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`call rewind.catch_up('afterwards')`)
	if n := queryOne[int64](t, w.pool, `
		select count(*) from lens.p full join lens.midway m using (stream_id) full join lens.afterwards a using (stream_id)
		where p.model is distinct from m.model or p.model is distinct from a.model`); n > 0 {
		t.Errorf("%d models differ between perspectives of before, amid and after the moves", n)
	}
	if problems := texts(t, w.pool, `select problem from rewind.verify_perspective('midway') union all select problem from rewind.verify_perspective('afterwards')`); len(problems) > 0 {
		t.Error(problems)
	}
	w.exec(`select rewind.drop_perspective('midway'), rewind.drop_perspective('afterwards')`)
	w.checkSettled()
}

// However many streams a tree has, appends wait less than a second for its moves.
func TestMovePausesAppends(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1024)
	mustExec(t, pool, `select count(*) from rewind.append_batch('t', (select array_agg('s' || i) from generate_series(1, 20000) i),
		array_fill(null::uuid, array[20000]), array_fill('x'::text, array[20000]), array_fill(null::jsonb, array[20000]))`)
	ctx, cancel := context.WithCancel(t.Context())
	var longest, appended atomic.Int64
	var writing sync.WaitGroup
	for i := range 4 {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				if _, err := rewind.Append(t.Context(), pool, "t", fmt.Sprint("s", i, n%500), []rewind.NewEvent{{Type: "x"}}); err != nil {
					t.Error(err)
					return
				}
				appended.Add(1)
				for took, most := int64(time.Since(began)), longest.Load(); took > most; most = longest.Load() {
					if longest.CompareAndSwap(most, took) {
						break
					}
				}
			}
		})
	}
	more := func() {
		enough := appended.Load() + 100
		eventually(t, func() bool { return appended.Load() > enough || t.Failed() })
	}
	for _, partitions := range []int{64, 1024, 512} {
		longest.Store(0)
		more()
		before := time.Duration(longest.Swap(0)) // what the machine makes of an append just now
		moveTree(t, pool, partitions)
		more() // those that waited have ended
		pause := time.Duration(longest.Load())
		t.Logf("the longest append took %v around a move, %v before", pause, before)
		if pause >= time.Second+before {
			t.Errorf("to %d partitions: an append took %v, before the move at most %v", partitions, pause, before)
		}
	}
	cancel()
	writing.Wait()
}

// What a repair leaves is judged by where each record stands: one that the live path has passed in any generation is owed, one that it has yet
// to read in any is not.
func TestRepairAcrossMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(w *world, more func(n int))
		status  int32
	}{
		"passed in a later generation": {func(w *world, more func(n int)) {
			moveTree(w.t, w.pool, 1)
			w.append("r", inOrder(10)...)
			more(150)
			w.apply()
		}, 8},
		"passed in one of two": {func(w *world, more func(n int)) {
			moveTree(w.t, w.pool, 1)
			w.append("r", inOrder(10)...)
			more(60)
			w.apply()
			moveTree(w.t, w.pool, 1)
			more(90)
		}, 8},
		"not read yet": {func(w *world, more func(n int)) {
			w.append("r", inOrder(10)...)
			w.apply()
			moveTree(w.t, w.pool, 1)
			more(150)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{partitions: 1})
			w.exec(repairSQL)
			w.append("s", inOrder(3)...)
			w.apply()
			w.append("s", testEvent{at: 0, v: 1})
			w.apply()
			w.exec(`select app.begin_repair()`)
			for queryOne[string](t, w.pool, `select (state).phase from app.repairs`) != "complete" {
				w.exec(`select app.step_repair(0)`)
			}
			at := 10_000
			c.prepare(w, func(n int) {
				events := make([]testEvent, n)
				for i := range events {
					at++
					events[i] = testEvent{at: at, v: at}
				}
				w.append("s", events...)
			})
			w.checkSound()
			w.exec(`select app.step_repair(0)`)
			w.checkSound()
			if got := w.cursor("s").Status; got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
			w.catchUp()
			w.checkSettled()
		})
	}
}

// A stream that owes, or that somebody acts on, is so in all generations of its tree.
func TestStreamOfMovedTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 1})
	w.append("s", inOrder(3)...)
	w.apply()
	w.append("s", testEvent{at: 0, v: 1})
	w.apply()
	moveTree(t, w.pool, 2)
	last := w.appendAt("s", testEvent{at: 10_000, v: 2})
	w.apply()
	applied := func() bool {
		return queryOne[bool](t, w.pool, `select rewind.wait_for_perspective('p', jsonb_build_object($1::text, $2::bigint), '0s')`, fmt.Sprint(last.WalPartition), last.WalOffset)
	}
	if applied() {
		t.Error("a record that its stream owes counts as applied")
	}
	w.catchUp()
	if !applied() {
		t.Error("a record does not count as applied")
	}

	w.append("s", testEvent{at: 10_001, v: 3})
	for _, act := range []string{
		`select rewind.skip_perspective_event('p', 's', '` + last.EventID.String() + `', 'test')`,
		`select rewind._repair_streams(g, array[rewind.stream_id('t', 's')]) from rewind.perspective_generations g`,
	} {
		tx := begin(t, w.pool, pgx.TxOptions{})
		if _, err := tx.Exec(t.Context(), act); err != nil {
			t.Fatal(err)
		}
		if n := queryOne[int64](t, w.pool, `select count(*) from rewind.apply_perspective_batch('p', $1)`, last.WalPartition); n != 0 {
			t.Errorf("%s: the live path reads a partition of the stream meanwhile", act)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.append("new", testEvent{at: 1, v: 1})
	w.catchUp()
	w.checkSettled()

	for damage, want := range map[string][]string{
		`delete from rewind.perspective_cursors where stream_id = rewind.stream_id('t', 'new')`:                  {"new missing_cursor"},
		`update rewind.perspective_cursors set applied_version = 4 where stream_id = rewind.stream_id('t', 's')`: {"s events_applied", "s model", "s owed"},
	} {
		tx := begin(t, w.pool, pgx.TxOptions{})
		if _, err := tx.Exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		rows, _ := tx.Query(t.Context(), `select stream_key || ' ' || problem from rewind.verify_perspective('p') order by 1`)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s: verify (-want +got):\n%s", damage, diff)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
