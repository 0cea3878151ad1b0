package tests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The plans of the live path must not depend on luck: batches of one size cost the same on empty tables, on grown ones without
// statistics and on analysed ones, ten in one session each, in order and late. Measured against plain work of the same moments, since
// other processes come and go.
func TestPlanStability(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 256}})
	w.exec(`alter table rewind.wal set (autovacuum_enabled = off); alter table rewind.streams set (autovacuum_enabled = off);
		alter table rewind_gen.models_1 set (autovacuum_enabled = off); alter table rewind_gen.snapshots_1 set (autovacuum_enabled = off)`)
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	now := 0
	grow := func(streams int, late bool) {
		t.Helper()
		now += 100
		keys, ids, types, payloads := make([]string, streams), make([]uuid.UUID, streams), make([]string, streams), make([]string, streams)
		for i := range streams {
			keys[i], types[i], payloads[i] = fmt.Sprint("s", i), "happened", fmt.Sprintf(`{"v": %d}`, now+i)
			ids[i] = at(now)
			if late {
				ids[i] = at(now - 150)
			}
		}
		if _, err := conn.Exec(t.Context(), `select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads); err != nil {
			t.Fatal(err)
		}
	}
	batch := func() time.Duration {
		t.Helper()
		begin := time.Now()
		if _, err := conn.Exec(t.Context(), `select from rewind.apply_perspective_batch('p', 0, 500)`); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	plainWork := func() time.Duration {
		t.Helper()
		begin := time.Now()
		if _, err := conn.Exec(t.Context(), `select count(md5(i::text)) from generate_series(1, 20000) i`); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	measure := func(late bool) float64 {
		times, plain := make([]time.Duration, 10), make([]time.Duration, 10)
		for i := range times {
			grow(500, late)
			times[i], plain[i] = batch(), plainWork()
		}
		return float64(slices.Min(times)) / float64(slices.Min(plain)) // noise only ever adds
	}

	empty, emptyLate := measure(false), measure(true)
	for range 20 {
		grow(2000, false)
	}
	w.apply()
	grown, grownLate := measure(false), measure(true)
	w.exec(`analyze`)
	analysed, analysedLate := measure(false), measure(true)
	t.Logf("in order: empty %.2f, grown %.2f, analysed %.2f; late: %.2f, %.2f, %.2f", empty, grown, analysed, emptyLate, grownLate, analysedLate)
	for what, times := range map[string][]float64{"in order": {empty, grown, analysed}, "late": {emptyLate, grownLate, analysedLate}} {
		if slices.Max(times) > 3*slices.Min(times) {
			t.Errorf("%s: batches of 500 took from %.2f to %.2f times the plain work", what, slices.Min(times), slices.Max(times))
		}
	}
	w.checkSettled()
}

// Nor must those of a build: on tables without statistics and on analysed ones it costs the same, in one session. The ladder's window and the
// plain aggregate both take part.
func TestBuildPlanStability(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(loadSQL)
	w.exec(`alter table rewind.wal set (autovacuum_enabled = off); alter table rewind.streams set (autovacuum_enabled = off)`)
	w.exec(`select app.load(1, 10000, 500)`)
	w.exec(`select app.load(10001, 12000, 5)`)
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	builds := 0
	measure := func() float64 {
		t.Helper()
		build, plain := time.Hour, time.Hour
		for range 3 {
			builds++
			name := fmt.Sprint("build", builds)
			w.exec(`select from rewind.create_perspective($1, 't', 'app.marked_1(jsonb, rewind.event)')`, name)
			for _, what := range []struct {
				statement string
				args      []any
				least     *time.Duration
			}{
				{`select from rewind.apply_perspective_batch($1, 0, 20000)`, []any{name}, &build},
				{`select count(md5(i::text)) from generate_series(1, 200000) i`, nil, &plain},
			} {
				begin := time.Now()
				if _, err := conn.Exec(t.Context(), what.statement, what.args...); err != nil {
					t.Fatal(err)
				}
				*what.least = min(*what.least, time.Since(begin)) // noise only ever adds
			}
			if n := queryOne[int64](t, w.pool, `select sum(events_applied)::bigint from rewind.perspective_cursors c
				join rewind.perspectives p on p.active_generation = c.generation_id and p.perspective_name = $1`, name); n != 12_000 {
				t.Fatalf("%d events were built in one step, not 12000", n)
			}
		}
		return float64(build) / float64(plain)
	}
	grown := measure()
	w.exec(`analyze`)
	analysed := measure()
	t.Logf("grown %.2f, analysed %.2f", grown, analysed)
	if max(grown, analysed) > 6*min(grown, analysed) { // a plan that flips costs more
		t.Errorf("a build of 12,000 events takes from %.2f to %.2f times the plain work", min(grown, analysed), max(grown, analysed))
	}
}
