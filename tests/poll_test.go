package tests

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind/internal/testdb"
)

// newFlagged is a world whose clock stands still, in which so many streams are flagged.
func newFlagged(t *testing.T, streams int) *world {
	t.Helper()
	w := newTimed(t, map[string]any{"debounce_window": "5s", "snapshots_enabled": false})
	keys, types, payloads, ids := make([]string, streams), make([]string, streams), make([]string, streams), make([]uuid.UUID, streams)
	for _, happened := range []int{10, 20, 30, 15} {
		for i := range streams {
			keys[i], types[i], payloads[i], ids[i] = fmt.Sprint("s", i), "happened", `{"v": 1}`, at(happened)
		}
		w.exec(`select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads)
		w.apply()
	}
	if n := queryOne[int](t, w.pool, `select count(*)::int from rewind.perspective_cursors where status = 32`); n != streams {
		t.Fatalf("%d streams flagged, want %d", n, streams)
	}
	return w
}

// pages is how many pages of the database a statement looks at, the functions that it calls included, and how many rows come of it. It is
// planned before, in the same session.
func (w *world) pages(statement string) (pages, rows int) {
	w.t.Helper()
	conn, err := w.pool.Acquire(ctxOf(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctxOf(w.t), statement); err != nil {
		w.t.Fatal(err)
	}
	text := queryOne[string](w.t, conn, `explain (analyze, buffers, format json) `+statement)
	var explained []struct {
		Plan struct {
			Hit  int     `json:"Shared Hit Blocks"`
			Read int     `json:"Shared Read Blocks"`
			Rows float64 `json:"Actual Rows"`
		}
	}
	if err := json.Unmarshal([]byte(text), &explained); err != nil {
		w.t.Fatal(err)
	}
	plan := explained[0].Plan
	return plan.Hit + plan.Read, int(plan.Rows)
}

// What a worker's poll costs doesn't depend on how many streams wait, for whatever they wait.
func TestPollsAreCheapWhateverWaits(t *testing.T) {
	t.Parallel()
	const few, many = 100, 10_000
	worlds := map[int]*world{few: newFlagged(t, few), many: newFlagged(t, many)}
	const poll = `select * from rewind._find_work(null, '{}')`
	cost := func(n int, wantDue bool) int {
		t.Helper()
		w := worlds[n]
		pages, rows := w.pages(poll)
		if (rows > 0) != wantDue {
			t.Errorf("%d streams: %d rows of work, want some: %t", n, rows, wantDue)
		}
		return pages
	}
	for _, state := range []struct {
		name  string
		enter func(w *world)
		due   bool
	}{
		{"in their debounce window", func(*world) {}, false},
		{"due", func(w *world) { testdb.Advance(t, w.pool, 6*time.Second) }, true},
		{"put off, since too little is owed", func(w *world) {
			w.setOptions(map[string]any{"defer_ratio": 0.9})
			for looks := 0; queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors where retry_at is null`) > 0; looks++ {
				if looks > many/1000 {
					t.Fatal("not all are put off")
				}
				w.exec(`select from rewind.claim_perspective_rewinds('tester', 3)`)
			}
		}, false},
		{"stale", func(w *world) { testdb.Advance(t, w.pool, 6*time.Minute) }, true},
		{"not to be rewound", func(w *world) {
			w.exec(`update rewind.perspective_cursors set retry_at = null`)
			w.setOptions(map[string]any{"rewind_enabled": false})
		}, false},
		{"waiting for a retry", func(w *world) {
			w.setOptions(map[string]any{"rewind_enabled": true})
			w.exec(`update rewind.perspective_cursors set status = 36, retry_at = rewind._now() + interval '1 minute'`)
		}, false},
		{"parked", func(w *world) { w.exec(`update rewind.perspective_cursors set retry_at = null`) }, false},
	} {
		for _, w := range worlds {
			state.enter(w)
			w.exec(`vacuum analyze rewind.perspective_cursors`)
		}
		base, got := cost(few, state.due), cost(many, state.due)
		t.Logf("%s: %d pages with %d streams, %d with %d", state.name, base, few, got, many)
		if got > base+base/2+20 {
			t.Errorf("%s: a poll looks at %d pages with %d streams, and at %d with %d", state.name, base, few, got, many)
		}
	}
}
