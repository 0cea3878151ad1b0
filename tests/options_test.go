package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/worker"
)

// optionTests names a test for every option that shows that it changes what happens.
var optionTests = map[string]string{
	"rewind_enabled":                  "TestRewindEnabled",
	"debounce_window":                 "TestDebounceWindows",
	"max_debounce_window":             "TestDebounceWindows",
	"rewind_share":                    "TestRewindShare",
	"defer_ratio":                     "TestDeferRatio",
	"max_staleness":                   "TestDeferRatio",
	"inline_rewind_events":            "TestInlineRewindEvents",
	"narrate_inline_rewinds":          "TestInlineRepairsAreNarratedOnRequest",
	"snapshots_enabled":               "TestSnapshotOptions",
	"snapshot_every_n_events":         "TestSnapshotOptions",
	"max_snapshots_per_stream":        "TestSnapshotOptions",
	"rewind_snapshot_interval_events": "TestSnapshotOptions",
	"stream_lock_timeout":             "TestStreamLockTimeout",
	"stream_lock_keepalive_interval":  "TestStreamLockKeepalive",
	"max_attempts":                    "TestParking",
	"retry_backoff":                   "TestRetryBackoff",
	"retry_backoff_max":               "TestRetryBackoff",
	"order_insensitive":               "TestOrderInsensitive",
	"max_clock_skew":                  "TestAppendEvents",
	"skew_policy":                     "TestQuarantine",
	"lateness_horizon":                "TestGuardsRefuse",
	"history_retention":               "TestPruneHistory",
	"system_retention":                "TestSystemRetention",
	"startup_scan_enabled":            "TestStartupScan",
	"startup_rewind_mode":             "TestStartupScan",
	"max_concurrent_rewinds":          "TestMaxConcurrentRewinds",
	"spans_enabled":                   "TestSpansCanBeOff",
	"log_level":                       "TestLogLevel",
}

func TestEveryOptionHasATest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
	}
	options := texts(t, testdb.New(t), `select jsonb_object_keys(rewind._option_defaults())`)
	for _, option := range options {
		if !tests[optionTests[option]] {
			t.Errorf("the test of option %s is %q, which there is not", option, optionTests[option])
		}
	}
	if len(optionTests) != len(options) {
		t.Errorf("tests of %d options, of which there are %d", len(optionTests), len(options))
	}
}

// newTimed is a world whose clock stands still.
func newTimed(t *testing.T, options map[string]any) *world {
	t.Helper()
	w := newWorld(t, worldOptions{options: options})
	testdb.SetClock(t, w.pool, time.UnixMilli(1_700_000_000_000).Add(time.Hour))
	return w
}

// setOptions sets options of the perspective.
func (w *world) setOptions(options map[string]any) {
	w.t.Helper()
	w.exec(`select rewind.set_options($1, 'p')`, options)
}

// appendInOrder appends n events in order, in batches of some, and has them applied.
func (w *world) appendInOrder(n, batch int) {
	w.t.Helper()
	for first := 0; first < n; first += batch {
		var events []testEvent
		for i := first; i < min(first+batch, n); i++ {
			events = append(events, testEvent{at: 10 * (i + 1), v: 1})
		}
		w.append("s", events...)
		w.apply()
	}
}

// appendLate appends an event that happened n milliseconds after at(0), and has it applied.
func (w *world) appendLate(n int) {
	w.t.Helper()
	w.append("s", testEvent{at: n, v: 1})
	w.apply()
}

// isDue tells whether a worker would be given the rewind of stream "s".
func (w *world) isDue() bool {
	w.t.Helper()
	tx, err := w.pool.Begin(ctxOf(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	defer tx.Rollback(ctxOf(w.t))
	return queryOne[int64](w.t, tx, `select count(*) from rewind.claim_perspective_rewinds('tester')`) > 0
}

// wantDueAfter expects the rewind of stream "s" to be due after some time, and not a second before.
func (w *world) wantDueAfter(t *testing.T, d time.Duration) {
	t.Helper()
	testdb.Advance(t, w.pool, d-time.Second)
	if w.isDue() {
		t.Errorf("due a second before %v", d)
	}
	testdb.Advance(t, w.pool, time.Second)
	if !w.isDue() {
		t.Errorf("not due after %v", d)
	}
}

func TestRewindEnabled(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{0, 256} {
		w := newWorld(t, worldOptions{options: map[string]any{"rewind_enabled": false, "inline_rewind_events": inline}})
		w.appendInOrder(5, 5)
		before := w.cursor("s")
		w.appendLate(15)
		w.catchUp()
		runUntilIdle(t, w, worker.Config{})
		after := w.cursor("s")
		if after.Status != 32 || after.Trigger == nil || after.AppliedVersion != 5 {
			t.Errorf("the late event is not flagged: %+v", after)
		}
		if diff := cmp.Diff(before.Model, after.Model); diff != "" {
			t.Error("the model changed:", diff)
		}
		w.checkSound()
		w.setOptions(map[string]any{"rewind_enabled": true})
		runUntilIdle(t, w, worker.Config{})
		w.checkSettled()
	}
}

func TestDebounceWindows(t *testing.T) {
	t.Parallel()
	options := map[string]any{"debounce_window": "10s", "max_debounce_window": "25s"}

	t.Run("after the last late event", func(t *testing.T) {
		t.Parallel()
		w := newTimed(t, options)
		w.appendInOrder(5, 5)
		w.appendLate(15)
		testdb.Advance(t, w.pool, 6*time.Second)
		w.appendLate(25)
		w.wantDueAfter(t, 10*time.Second)
	})
	t.Run("at most so long after the first one", func(t *testing.T) {
		t.Parallel()
		w := newTimed(t, options)
		w.appendInOrder(5, 5)
		for i := range 4 {
			w.appendLate(15 + i)
			testdb.Advance(t, w.pool, 5*time.Second)
		}
		w.appendLate(25) // which would make it wait until the 30th second
		w.wantDueAfter(t, 5*time.Second)
	})
}

// After a rewind of a second a stream with a share of a tenth waits for nine.
func TestRewindShare(t *testing.T) {
	t.Parallel()
	for share, wait := range map[float64]time.Duration{0.1: 9 * time.Second, 0.25: 3 * time.Second} {
		w := newTimed(t, map[string]any{"rewind_share": share})
		w.appendInOrder(5, 5)
		w.appendLate(15)
		token, _, _ := w.claim()
		testdb.Advance(t, w.pool, time.Second)
		w.complete(w.replay(token, false))
		w.appendLate(25)
		w.wantDueAfter(t, wait)
	}
}

func TestDeferRatio(t *testing.T) {
	t.Parallel()
	options := map[string]any{"defer_ratio": 0.25, "max_staleness": "1m", "snapshots_enabled": false}

	t.Run("until enough is owed", func(t *testing.T) {
		t.Parallel()
		w := newTimed(t, options)
		w.appendInOrder(30, 30)
		for i := range 10 {
			if w.isDue() {
				t.Errorf("due with %d of %d events owed", i, 30+i)
			}
			w.appendLate(15 + i)
		}
		if !w.isDue() {
			t.Error("not due with a quarter of the events owed")
		}
	})
	t.Run("or the model has been stale for long", func(t *testing.T) {
		t.Parallel()
		w := newTimed(t, options)
		w.appendInOrder(30, 30)
		w.appendLate(15)
		w.wantDueAfter(t, time.Minute)
	})
	t.Run("not without it", func(t *testing.T) {
		t.Parallel()
		w := newTimed(t, options)
		w.setOptions(map[string]any{"defer_ratio": nil})
		w.appendInOrder(30, 30)
		w.appendLate(15)
		if !w.isDue() {
			t.Error("not due")
		}
	})
}

func TestInlineRewindEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		option, events int
		status         int32
	}{
		{0, 1, 32}, {5, 4, 2}, {5, 5, 32}, {6, 5, 2},
	} {
		w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": test.option}})
		w.appendInOrder(test.events, test.events)
		w.appendLate(5)
		if c := w.cursor("s"); c.Status != test.status {
			t.Errorf("%d events to fold again with an option of %d: status %d, want %d", test.events+1, test.option, c.Status, test.status)
		}
	}
}

func TestSnapshotOptions(t *testing.T) {
	t.Parallel()
	// snapshots are the events that they have, the newest first.
	snapshots := func(w *world) []int64 {
		return queryOne[[]int64](t, w.pool, `select coalesce(array_agg(events_applied order by event_id desc), '{}') from rewind.perspective_snapshots`)
	}

	t.Run("snapshots_enabled", func(t *testing.T) {
		t.Parallel()
		for _, enabled := range []bool{true, false} {
			w := newWorld(t, worldOptions{options: map[string]any{"snapshots_enabled": enabled, "snapshot_every_n_events": 10}})
			w.appendInOrder(50, 50)
			w.appendLate(255)
			w.catchUp()
			w.checkSettled()
			if got := snapshots(w); (len(got) > 0) != enabled {
				t.Errorf("%t: snapshots of %v events", enabled, got)
			}
		}
	})
	t.Run("snapshot_every_n_events", func(t *testing.T) {
		t.Parallel()
		for every, newest := range map[int]int64{10: 30, 20: 20} {
			w := newWorld(t, worldOptions{options: map[string]any{"snapshot_every_n_events": every}})
			w.appendInOrder(35, 1)
			if got := snapshots(w); len(got) == 0 || got[0] != newest {
				t.Errorf("every %d: snapshots of %v events, want the newest one of %d", every, got, newest)
			}
		}
	})
	t.Run("max_snapshots_per_stream", func(t *testing.T) {
		t.Parallel()
		for _, most := range []int{2, 4} {
			w := newWorld(t, worldOptions{options: map[string]any{"max_snapshots_per_stream": most, "snapshot_every_n_events": 5}})
			w.appendInOrder(500, 25)
			if got := snapshots(w); len(got) != most {
				t.Errorf("at most %d: snapshots of %v events", most, got)
			}
			w.checkSound()
		}
	})
	t.Run("rewind_snapshot_interval_events", func(t *testing.T) {
		t.Parallel()
		for _, interval := range []int64{5, 20} {
			w := newWorld(t, worldOptions{options: map[string]any{"rewind_snapshot_interval_events": interval}})
			w.appendInOrder(80, 80)
			w.appendLate(5)
			w.catchUp()
			if got := snapshots(w); len(got) < 2 || got[0] != 81 || got[1] != 81-interval {
				t.Errorf("spaced by %d: snapshots of %v events", interval, got)
			}
		}
	})
}

func TestStreamLockTimeout(t *testing.T) {
	t.Parallel()
	w := newTimed(t, map[string]any{"stream_lock_timeout": "7s", "stream_lock_keepalive_interval": "1s"})
	w.appendInOrder(5, 5)
	w.appendLate(15)
	token, _, _ := w.claim()
	w.wantDueAfter(t, 7*time.Second)
	r := w.replay(token, false)
	w.claim()
	wantCode(t, w.pool, "RW008", completeSQL, r.args()...)
}

// gate makes rewinds wait for a lock that the test holds, until open is called.
func (w *world) gate(t *testing.T) (open func()) {
	t.Helper()
	w.exec(`
		create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		begin
		  perform pg_advisory_xact_lock_shared(7);
		  return jsonb_build_object('count', coalesce((model ->> 'count')::int, 0) + 1);
		end $$`)
	conn, err := pgx.ConnectConfig(t.Context(), w.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	open = func() {
		if err := conn.Close(ctxOf(t)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(open)
	if _, err := conn.Exec(t.Context(), `select pg_advisory_lock(7)`); err != nil {
		t.Fatal(err)
	}
	return open
}

func TestStreamLockKeepalive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"stream_lock_keepalive_interval": "20ms"}})
	w.appendInOrder(5, 5)
	w.appendLate(15)
	open := w.gate(t)
	stop := start(t, newWorker(t, w, worker.Config{}))
	began := time.Now()
	var last *time.Time
	for renewals := 0; renewals < 6; renewals++ { // the first is the claim
		eventually(t, func() bool {
			expires := queryOne[*time.Time](t, w.pool, `select max(expires_at) from rewind.perspective_stream_locks`)
			isNew := expires != nil && (last == nil || expires.After(*last))
			last = expires
			return isNew
		})
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("five renewals took %v", took)
	}
	open()
	eventually(t, func() bool { return w.cursor("s").Status == 2 })
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestMaxConcurrentRewinds(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{1, 2} {
		w := newWorld(t, worldOptions{})
		w.exec(`select rewind.set_options(jsonb_build_object('max_concurrent_rewinds', $1::int, 'startup_rewind_mode', 'background'))`, most)
		for _, stream := range strings.Fields("a b c d e") {
			w.append(stream, inOrder(5)...)
			w.apply()
			w.append(stream, testEvent{at: 2, v: 1})
		}
		w.apply()
		w.exec(`create table app.held (streams bigint)`)
		w.exec(`create function app.note() returns trigger language plpgsql as $$
			begin insert into app.held select count(*) from rewind.perspective_stream_locks; return null; end $$`)
		w.exec(`create trigger note after insert on rewind.perspective_stream_locks for each statement execute function app.note()`)
		held := func() int64 {
			return queryOne[int64](t, w.pool, `select coalesce(max(streams), 0) from app.held`)
		}
		open := w.gate(t)
		stop := start(t, newWorker(t, w, worker.Config{}))
		eventually(t, func() bool { return held() == most })
		open()
		eventually(t, func() bool {
			return queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2`) == 0
		})
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if n := held(); n != most {
			t.Errorf("%d rewinds at once, want %d", n, most)
		}
	}
}

func TestRetryBackoff(t *testing.T) {
	t.Parallel()
	w := newTimed(t, map[string]any{"retry_backoff": "2s", "retry_backoff_max": "5s"})
	w.append("s", testEvent{at: 10, v: 1, fail: true})
	w.apply()
	for attempt, least := range []float64{2, 4, 5, 5} {
		wait := queryOne[float64](t, w.pool, `select extract(epoch from retry_at - rewind._now())::float8 from rewind.perspective_cursors`)
		if wait < least || wait > 1.5*least {
			t.Errorf("%v s after attempt %d, want from %v to %v", wait, attempt+1, least, 1.5*least)
		}
		w.catchUp()
	}
}

// Late events of a fold to which order doesn't matter are folded on: nothing is rewound, and no snapshots are kept.
func TestOrderInsensitive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"snapshot_every_n_events": 5}})
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
	  select jsonb_build_object('sum', coalesce((model -> 'sum')::int, 0) + (event.payload -> 'v')::int) $$`)
	late := func() {
		t.Helper()
		for _, n := range rand.Perm(20) {
			w.append("s", testEvent{at: n, v: 1})
			w.apply()
		}
	}
	w.setOptions(map[string]any{"order_insensitive": true})
	late()
	c := w.cursor("s")
	if c.Status != 2 || c.EventsApplied != 20 || c.Model["sum"] != 20.0 {
		t.Errorf("%+v", c)
	}
	if newest := queryOne[uuid.UUID](t, w.pool, `select event_id from rewind.wal where stream_id = rewind.stream_id('t', 's') order by event_id desc limit 1`); newest != *c.LastEventID {
		t.Errorf("last event %v, want %v", *c.LastEventID, newest)
	}
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_snapshots`); n > 0 {
		t.Errorf("%d snapshots", n)
	}
	if found := w.verify(); len(found) > 0 {
		t.Error(found)
	}
	w.setOptions(map[string]any{"order_insensitive": false})
	late()
	if c := w.cursor("s"); c.Status != 32 {
		t.Errorf("without the option: %+v", c)
	}
	w.catchUp()
	if found := w.verify(); len(found) > 0 {
		t.Error(found)
	}
}

// A false claim is found by and by, and what it did is repaired.
func TestFalseOrderInsensitive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 2, options: map[string]any{"snapshot_every_n_events": 5}})
	for i := range 10 {
		w.append(fmt.Sprint("s", i), testEvent{at: 10000, v: 1}, testEvent{at: 10001, v: 2})
	}
	w.apply()
	w.setOptions(map[string]any{"order_insensitive": true})
	for i := 0; queryOne[bool](t, w.pool, `select (options ->> 'order_insensitive')::boolean from rewind.perspectives`); i++ {
		if i > 1000 { // found with a probability of a twentieth each time
			t.Fatal("a false claim is not found")
		}
		w.append(fmt.Sprint("s", i%10), testEvent{at: i, v: 1 + i%6})
		w.apply()
	}
	w.catchUp()
	w.checkSettled()
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.wal where event_type = 'PerspectiveOrderMatters'`); n != 1 {
		t.Errorf("%d system events say so", n)
	}
}

// seedFor gives a seed after which the first random number is below a twentieth, so that a claim is checked, or is not.
func seedFor(t *testing.T, w *world, checks bool) float64 {
	t.Helper()
	for seed := -1.0; seed < 1; seed += 0.001 {
		// An OFFSET keeps the two in order.
		if queryOne[bool](t, w.pool, `select random() < 0.05 from (select setseed($1) offset 0) s`, seed) == checks {
			return seed
		}
	}
	t.Fatal("no seed")
	return 0
}

// A claim that is found false in one generation, or beside a batch that still relies on it, is taken back everywhere.
func TestFalseOrderInsensitiveElsewhere(t *testing.T) {
	t.Parallel()
	late := func(t *testing.T, partitions int) (w *world, checks, doesNot float64) {
		t.Helper()
		w = newWorld(t, worldOptions{partitions: partitions, options: map[string]any{"order_insensitive": true}})
		return w, seedFor(t, w, true), seedFor(t, w, false)
	}
	batch := func(t *testing.T, db interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}, seed float64, partition int32, generation int) {
		t.Helper()
		for _, sql := range []string{
			fmt.Sprintf(`select setseed(%v)`, seed),
			fmt.Sprintf(`select from rewind.apply_perspective_batch('p', %d, 1000, %d)`, partition, generation),
		} {
			if _, err := db.Exec(t.Context(), sql); err != nil {
				t.Error(err)
			}
		}
	}
	settled := func(t *testing.T, w *world) {
		t.Helper()
		if queryOne[bool](t, w.pool, `select (options ->> 'order_insensitive')::boolean from rewind.perspectives`) {
			t.Error("the claim was not found false")
		}
		runUntilIdle(t, w, worker.Config{})
		for _, generation := range queryOne[[]int](t, w.pool, `select array_agg(generation_id) from rewind.perspective_generations`) {
			w.verified("p", generation)
		}
		if n := queryOne[int](t, w.pool, `select count(*) from rewind.unordered_folds`); n > 0 {
			t.Errorf("%d streams are still to be replayed", n)
		}
	}

	t.Run("generations", func(t *testing.T) {
		t.Parallel()
		for _, finder := range []int{1, 2} {
			w, checks, doesNot := late(t, 1)
			w.append("a", testEvent{at: 1000, v: 1})
			w.append("b", testEvent{at: 1000, v: 2})
			w.apply()
			w.exec(`select from rewind.begin_perspective_rebuild('p')`)
			runUntilIdle(t, w, worker.Config{})
			conn, err := w.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.append("b", testEvent{at: 10, v: 3})
			batch(t, conn, doesNot, 0, 1)
			batch(t, conn, doesNot, 0, 2)
			w.append("a", testEvent{at: 10, v: 4})
			batch(t, conn, checks, 0, finder)
			conn.Release()
			settled(t, w)
		}
	})

	t.Run("batches", func(t *testing.T) {
		t.Parallel()
		w, checks, doesNot := late(t, 2)
		var keys [2][]string // of streams, by partition
		for i := 0; len(keys[0]) < 1 || len(keys[1]) < 2; i++ {
			key := fmt.Sprint("s", i)
			w.append(key, testEvent{at: 1000, v: 1})
			p := queryOne[int](t, w.pool, `select wal_partition from rewind.streams where stream_key = $1`, key)
			keys[p] = append(keys[p], key)
		}
		w.apply()
		w.append(keys[0][0], testEvent{at: 10, v: 2})
		w.append(keys[1][0], testEvent{at: 10, v: 2})
		// One that relies on the claim is open while another one finds it false: that waits.
		open := begin(t, w.pool, pgx.TxOptions{})
		batch(t, open, doesNot, 1, 1)
		finder := begin(t, w.pool, pgx.TxOptions{})
		blockedUntil := func(tx pgx.Tx, seed float64, partition int32, holder pgx.Tx) {
			t.Helper()
			done := make(chan struct{})
			go func() {
				defer close(done)
				batch(t, tx, seed, partition, 1)
			}()
			waitUntilBlocked(t, w.pool, tx.Conn().PgConn().PID())
			commit(t, holder)
			<-done
		}
		blockedUntil(finder, checks, 0, open)

		// One that began before and ends after is told.
		w.append(keys[1][1], testEvent{at: 10, v: 3})
		after := begin(t, w.pool, pgx.TxOptions{})
		blockedUntil(after, doesNot, 1, finder)
		commit(t, after)
		settled(t, w)
	})
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]map[string]bool{
		"error":                        {},
		"warn":                         {"PerspectiveWorker": true},
		"info,PerspectiveWorker=error": {"Worker": true, "PerspectiveStartupScan": true},
		"error,PerspectiveWorker=info": {"PerspectiveWorker": true},
	} {
		w := newWorld(t, worldOptions{})
		w.exec(`select rewind.set_options(jsonb_build_object('log_level', $1::text))`, level)
		w.append("s", inOrder(5)...)
		w.apply()
		w.append("s", testEvent{at: 2, v: 1})
		var log entries
		runUntilIdle(t, w, worker.Config{Logger: log.logger()})
		got := map[string]bool{}
		for _, e := range log.list {
			got[e.attrs["category"].(string)] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: categories: %s", level, diff)
		}
	}
}
