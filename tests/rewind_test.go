package tests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// replay restores, folds and returns the arguments of a completion of stream "s", as a worker would hold them.
type replay struct {
	model         map[string]any
	lastEventID   string
	head, events  int64
	restore       *string
	token         int64
	generation    int32
	toFold        int64
	source        string
	snapshotModel map[string]any
}

func (w *world) replay(token int64, full bool) replay {
	w.t.Helper()
	r := replay{token: token, generation: queryOne[int32](w.t, w.pool, `select active_generation from rewind.perspectives`)}
	err := w.pool.QueryRow(ctxOf(w.t), `
		select b.head_version, b.restore_event_id::text, b.events_to_fold, b.replay_source, b.model,
			p.model, p.last_event_id::text, b.events_applied + p.events_folded
		from rewind._begin_replay($1, rewind.stream_id('t', 's'), null, $2) b
		cross join lateral rewind._replay_page((select g from rewind.perspective_generations g where generation_id = $1),
			rewind.stream_id('t', 's'), b.model, b.restore_event_id, b.head_version, 100000) p`, r.generation, full).
		Scan(&r.head, &r.restore, &r.toFold, &r.source, &r.snapshotModel, &r.model, &r.lastEventID, &r.events)
	if err != nil {
		w.t.Fatal("replay:", err)
	}
	return r
}

const completeSQL = `select status from rewind.complete_perspective_cursor_work($1, rewind.stream_id('t', 's'), $2, $3, $4, $5, $6, $7)`

func (r replay) args() []any {
	return []any{r.generation, r.token, r.model, r.lastEventID, r.head, r.events, r.restore}
}

func (w *world) complete(r replay) int32 {
	w.t.Helper()
	return queryOne[int32](w.t, w.pool, completeSQL, r.args()...)
}

// lateWorld has stream "s" with n events in order, read, and one late event at depth d, flagged.
func lateWorld(t *testing.T, n, depth int) *world {
	w := newWorld(t, worldOptions{})
	for i := range n {
		w.append("s", testEvent{at: 10 * (i + 1), v: i + 1})
	}
	w.apply()
	w.append("s", testEvent{at: 10*(n-depth) + 5, v: 1000})
	w.apply()
	return w
}

func TestCompleteCommitsPrefixAndStragglers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile []testEvent // arrives after the replay's head was chosen
		read      bool        // by the live path, before the completion
		want      int32
	}{
		"nothing arrived":                    {want: 2},
		"in order, not read":                 {meanwhile: []testEvent{{at: 5000, v: 3}}, want: 2},
		"in order, read":                     {meanwhile: []testEvent{{at: 5000, v: 3}, {at: 5001, v: 4}}, read: true, want: 2},
		"late again, not read":               {meanwhile: []testEvent{{at: 12, v: 3}}, want: 32},
		"late again, read":                   {meanwhile: []testEvent{{at: 12, v: 3}, {at: 5000, v: 4}}, read: true, want: 32},
		"more in order than is folded, read": {meanwhile: inOrder(101), read: true, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := lateWorld(t, 20, 10)
			token, _, _ := w.claim()
			r := w.replay(token, false)
			w.append("s", test.meanwhile...)
			if test.read {
				w.apply()
			}
			if got := w.complete(r); got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
			w.checkSound()
			if c := w.cursor("s"); (c.Trigger != nil) != (test.want == 32) {
				t.Errorf("trigger %v at status %d", c.Trigger, c.Status)
			}
			w.catchUp()
			w.checkSettled()
		})
	}
}

func inOrder(n int) []testEvent {
	events := make([]testEvent, n)
	for i := range events {
		events[i] = testEvent{at: 5000 + i, v: i}
	}
	return events
}

func TestCompleteIsFenced(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	token, _, _ := w.claim()
	r := w.replay(token, false)
	before := w.cursor("s")

	stranger := r
	stranger.token = token + 1
	wantCode(t, w.pool, "RW008", completeSQL, stranger.args()...)

	// The lock expires and the same worker takes it again: its older attempt is a stranger.
	w.exec(`update rewind.perspective_stream_locks set expires_at = rewind._now()`)
	wantCode(t, w.pool, "RW008", completeSQL, r.args()...)
	second, _, _ := w.claim()
	wantCode(t, w.pool, "RW008", completeSQL, r.args()...)
	for _, call := range []string{`renew_perspective_stream_lock`, `release_perspective_stream_lock`} {
		if queryOne[bool](t, w.pool, `select rewind.`+call+`($1, rewind.stream_id('t', 's'), $2)`, r.generation, token) {
			t.Errorf("%s with the older token succeeded", call)
		}
	}
	wantCode(t, w.pool, "RW009", `select rewind.claim_perspective_stream_lock($1, rewind.stream_id('t', 's'), 'tester', 'rewind')`, r.generation)
	if diff := cmp.Diff(before, w.cursor("s")); diff != "" {
		t.Errorf("a refused completion changed the cursor (-before +after):\n%s", diff)
	}
	if !queryOne[bool](t, w.pool, `select rewind.renew_perspective_stream_lock($1, rewind.stream_id('t', 's'), $2)`, r.generation, second) {
		t.Error("the holder can't renew")
	}
	r.token = second
	if got := w.complete(r); got != 2 {
		t.Errorf("status %d after the completion by the holder", got)
	}
	w.checkSettled()
}

func TestCompleteRefusesIncomplete(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	token, _, _ := w.claim()
	r := w.replay(token, false)
	for name, spoil := range map[string]func(*replay){
		"too few events":         func(r *replay) { r.events-- },
		"too many events":        func(r *replay) { r.events++ },
		"another last event":     func(r *replay) { r.lastEventID = at(4).String() },
		"beyond the log":         func(r *replay) { r.head++; r.events++ },
		"behind the cursor":      func(r *replay) { r.head, r.events = 10, 10 },
		"restored after trigger": func(r *replay) { id := at(190).String(); r.restore = &id },
	} {
		spoiled := r
		spoil(&spoiled)
		pgErr := wantCode(t, w.pool, "RW013", completeSQL, spoiled.args()...)
		if !strings.Contains(pgErr.Detail, `"expected"`) {
			t.Errorf("%s: detail %q names nothing expected", name, pgErr.Detail)
		}
	}
	if got := w.complete(r); got != 2 {
		t.Errorf("status %d after the right completion", got)
	}
	w.checkSettled()
}

// A cursor whose counts were damaged is repaired by a full replay, not refused for ever.
func TestDamagedCursorIsRepaired(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	w.exec(`update rewind.perspective_cursors set events_applied = 3`)
	w.catchUp()
	w.checkSettled()
	w.exec(`update rewind.perspective_snapshots set events_applied = 1`)
	w.append("s", testEvent{at: 195, v: 3})
	w.catchUp()
	w.checkSettled()
}

func TestFailedCompletionKeepsFlag(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	token, trigger, behind := w.claim()
	if behind != 10 {
		t.Errorf("events behind %d, want 10", behind)
	}
	r := w.replay(token, false)
	before := w.cursor("s")
	w.exec(`select rewind.complete_perspective_cursor_work($1, rewind.stream_id('t', 's'), $2, null, null, 0, 0, p_error => 'boom')`, r.generation, token)
	c := w.cursor("s")
	if c.Status != 36 || c.Error == nil || *c.Error != "boom" || c.Attempts != 1 || c.RetryAt == nil {
		t.Errorf("cursor after a failure: %+v", c)
	}
	if diff := cmp.Diff(before.Model, c.Model); diff != "" || c.AppliedVersion != before.AppliedVersion || *c.Trigger != *trigger {
		t.Errorf("a failure moved the cursor: %+v", c)
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds where outcome = 'failed' and error = 'boom'`); n != 1 {
		t.Errorf("%d failed rewinds in the history, want 1", n)
	}
	w.catchUp() // waits for no backoff
	w.checkSettled()
}

func TestRestorePoints(t *testing.T) {
	t.Parallel()
	t.Run("nearest valid snapshot", func(t *testing.T) {
		t.Parallel()
		// Events 1..100, snapshots at 30, 60, 90; late at 45, rewound; then late at 75: the old snapshot at 60 never saw 45.
		w := newWorld(t, worldOptions{options: map[string]any{"snapshot_every_n_events": 30}})
		for i := range 100 {
			w.append("s", testEvent{at: 10 * (i + 1), v: i + 1})
		}
		for queryOne[int64](t, w.pool, `select records_read from rewind.apply_perspective_batch('p', 0, 10)`) > 0 {
		}
		for i, late := range []int{455, 755} {
			w.append("s", testEvent{at: late, v: 2000 + i})
			w.apply()
			w.catchUp()
			w.checkSettled()
		}
		got := queryOne[[]string](t, w.pool, `select array_agg(replay_source || ' ' || events_replayed order by rewind_id) from rewind.perspective_rewinds`)
		// The second replay starts from a snapshot that the first one saved.
		if len(got) != 2 || got[0] != "snapshot 71" || !strings.HasPrefix(got[1], "snapshot ") {
			t.Errorf("rewinds %v", got)
		}
	})
	t.Run("another version", func(t *testing.T) {
		t.Parallel()
		w := lateWorld(t, 150, 5)
		w.exec(`update rewind.perspective_snapshots set version = 99, model = '{"digest": "of another fold"}'`)
		token, _, _ := w.claim()
		if r := w.replay(token, false); r.source != "full" || r.restore != nil {
			t.Errorf("restored from a snapshot of another version: %+v", r)
		}
	})
	t.Run("requested", func(t *testing.T) {
		t.Parallel()
		w := lateWorld(t, 150, 5)
		w.catchUp()
		w.exec(`update rewind.perspective_cursors set model = '{"digest": "wrong", "count": 1}'`)
		w.exec(`update rewind.perspective_snapshots set model = '{"digest": "wrong", "count": 1}'`)
		if got := queryOne[int32](t, w.pool, `select status from rewind.request_perspective_rewind('p', 's')`); got != 32 {
			t.Errorf("status %d after the request", got)
		}
		if got := w.cursor("s"); got.Model["digest"] != "wrong" {
			t.Errorf("the request changed the model: %v", got.Model)
		}
		w.catchUp()
		w.checkSettled()
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		w := lateWorld(t, 150, 5)
		token, _, _ := w.claim()
		r := w.replay(token, false)
		w.exec(`select from rewind.reset_perspective_cursor('p', 's')`)
		c := w.cursor("s")
		if c.Status != 32 || c.AppliedVersion != 0 || c.EventsApplied != 0 || c.LastEventID != nil || c.Model != nil || *c.Trigger != firstEvent(t, w) {
			t.Errorf("cursor after reset: %+v", c)
		}
		if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_snapshots`); n != 0 {
			t.Errorf("%d snapshots left", n)
		}
		wantCode(t, w.pool, "RW008", completeSQL, r.args()...)
		w.checkSound()
		w.catchUp()
		w.checkSettled()
	})
}

// A batch that waits for a completion judges its records by the cursor that the completion leaves, and the other way round.
func TestBatchAndCompletionInEveryOrder(t *testing.T) {
	t.Parallel()
	for name, batchFirst := range map[string]bool{"batch first": true, "completion first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := lateWorld(t, 20, 10)
			token, _, _ := w.claim()
			r := w.replay(token, false)
			w.append("s", testEvent{at: 22, v: 3}, testEvent{at: 900, v: 4})

			batch := `select from rewind.apply_perspective_batch('p', 0)`
			first, err := w.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(t.Context())
			second, err := w.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer second.Release()
			firstSQL, firstArgs, secondSQL, secondArgs := batch, []any{}, completeSQL, r.args()
			if !batchFirst {
				firstSQL, firstArgs, secondSQL, secondArgs = secondSQL, secondArgs, firstSQL, firstArgs
			}
			if _, err := first.Exec(t.Context(), firstSQL, firstArgs...); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			pid := second.Conn().PgConn().PID()
			go func() {
				_, err := second.Exec(t.Context(), secondSQL, secondArgs...)
				done <- err
			}()
			waitBlocked(t, w, pid)
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			w.checkSound()
			w.catchUp()
			w.checkSettled()
		})
	}
}

func firstEvent(t *testing.T, w *world) [16]byte {
	t.Helper()
	return queryOne[[16]byte](t, w.pool, `select event_id from rewind.wal where stream_id = rewind.stream_id('t', 's') order by event_id limit 1`)
}

// waitBlocked waits until a session waits for a lock that another one holds.
func waitBlocked(t *testing.T, w *world, pid uint32) {
	t.Helper()
	eventually(t, func() bool {
		return queryOne[bool](t, w.pool, `select cardinality(pg_blocking_pids($1)) > 0`, int32(pid))
	})
}

// A rewind replays up to the head of its stream, and the live path has yet to come there: the batch that does folds only what came after.
func TestBatchThatIsPartlyApplied(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 10, 5)
	w.append("s", testEvent{at: 200, v: 200}, testEvent{at: 210, v: 210})
	token, _, _ := w.claim()
	w.complete(w.replay(token, false))
	if got := w.cursor("s"); got.AppliedVersion != 13 || got.EventsApplied != 13 {
		t.Fatalf("after the rewind: %+v, want 13 events", got)
	}
	w.append("s", testEvent{at: 220, v: 220}, testEvent{at: 230, v: 230}, testEvent{at: 240, v: 240})
	w.append("other", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	folded := queryOne[int](t, w.pool, `
		select sum(b.events_folded)::int from rewind.partitions p cross join lateral rewind.apply_perspective_batch('p', p.wal_partition) b where p.tree_name = 't'`)
	if folded != 5 {
		t.Errorf("%d events folded, want 5", folded)
	}
	if got := w.cursor("s"); got.AppliedVersion != 16 || got.EventsApplied != 16 {
		t.Errorf("after the batch: %+v, want 16 events", got)
	}
	w.checkSettled()
}
