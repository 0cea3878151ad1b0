package tests

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

// appendUpTo appends the events of stream "s" from the n-th on until it has so many, in order and in batches, and has them applied.
func (w *world) appendUpTo(n, events, batch int) {
	w.t.Helper()
	for ; n < events; n += batch {
		size := min(batch, events-n)
		keys, ids, types, payloads := make([]string, size), make([]uuid.UUID, size), make([]string, size), make([]string, size)
		for i := range size {
			keys[i], ids[i], types[i], payloads[i] = "s", at(10*(n+i+1)), "happened", fmt.Sprintf(`{"v": %d}`, n+i+1)
		}
		w.exec(`select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads)
		w.exec(`select from rewind.apply_perspective_batch('p', 0, $1)`, size)
	}
}

// foldedBy is how many events are folded for one that comes late by depth events in a stream of so many.
func (w *world) foldedBy(depth, events int) int64 {
	w.t.Helper()
	before := queryOne[int64](w.t, w.pool, `select coalesce(max(rewind_id), 0) from rewind.perspective_rewinds`)
	w.append("s", testEvent{at: 10*(events-depth) + 5, v: 1})
	w.catchUp()
	return queryOne[int64](w.t, w.pool, `select sum(events_folded)::bigint from rewind.perspective_rewinds where rewind_id > $1`, before)
}

// What a late event costs is a matter of how late it is and not of how long its stream is: with the defaults, at most twice its depth and
// the spacing of live snapshots, on the rewind path and in a batch.
func TestLateEventCostsItsDepth(t *testing.T) {
	t.Parallel()
	const spacing = 100
	for path, inline := range map[string]int{"rewind path": 0, "inline": 1_000_000} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": inline, "narrate_inline_rewinds": true}})
			events := 0
			atHundred := map[int]int64{}
			for _, length := range []int{1_000, 10_000, 100_000} {
				w.appendUpTo(events, length, 2_500)
				events = length
				for depth := 10; depth < length; depth *= 10 {
					folded := w.foldedBy(depth, length)
					t.Logf("late by %d in a stream of %d: %d events folded", depth, length, folded)
					if depth == 100 {
						atHundred[length] = folded
					}
					if folded > int64(2*depth+spacing) {
						t.Errorf("late by %d in a stream of %d: %d events folded, want at most %d", depth, length, folded, 2*depth+spacing)
					}
				}
			}
			if float64(atHundred[100_000]) > 1.5*float64(atHundred[1_000]) {
				t.Errorf("late by 100: %d events folded in a stream of 100,000, %d in one of 1,000", atHundred[100_000], atHundred[1_000])
			}
			w.checkSettled()
		})
	}
}

// Against a replay of the whole stream, an event that is late by 100 in 10,000 costs next to nothing.
func TestLateEventAgainstFullReplay(t *testing.T) {
	t.Parallel()
	const events, depth, most = 10_000, 100, 0.03
	for _, batch := range []int{100, 3_000, events} {
		w := newWorld(t, worldOptions{})
		w.appendUpTo(0, events, batch)
		late := w.foldedBy(depth, events)
		w.exec(`select from rewind.request_perspective_rewind('p', 's')`)
		w.catchUp()
		full := queryOne[int64](t, w.pool, `select events_folded from rewind.perspective_rewinds order by rewind_id desc limit 1`)
		t.Logf("in batches of %d: %d of %d events folded", batch, late, full)
		if full != events+1 {
			t.Errorf("a full replay folds %d events, want %d", full, events+1)
		}
		if float64(late) > most*float64(full) {
			t.Errorf("in batches of %d: %d of %d events folded, want at most %v of them", batch, late, full, most)
		}
		w.checkSettled()
	}
}

// What a repair in a batch reads of the log is what it folds, and not the stream from its beginning.
func TestLateEventReadsWhatItFolds(t *testing.T) {
	t.Parallel()
	const events, depth = 20_000, 100
	for _, analysed := range []bool{false, true} {
		w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 1_000}})
		w.appendUpTo(0, events, 2_500)
		if analysed {
			w.exec(`analyze`)
		}
		w.append("s", testEvent{at: 10*(events-depth) + 5, v: 1})
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		readSoFar := func() int64 { // may have in it what the session read before
			return queryOne[int64](t, tx, `
				select idx_tup_fetch + seq_tup_read from pg_stat_xact_user_tables where schemaname = 'rewind' and relname = 'wal'`)
		}
		before := readSoFar()
		if late := queryOne[int64](t, tx, `select late from rewind.apply_perspective_batch('p', 0)`); late != 1 {
			t.Errorf("%d streams are late, want 1", late)
		}
		read := readSoFar() - before
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("analysed %v: %d records read", analysed, read)
		if read > 20*depth {
			t.Errorf("analysed %v: %d records are read for an event that is late by %d", analysed, read, depth)
		}
		w.checkSettled()
	}
}
