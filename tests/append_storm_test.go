package tests

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

// appendMany appends n events in order to stream "s" in one call, the i-th 10 ms after the one before.
func (w *world) appendMany(n int) {
	w.t.Helper()
	keys, ids, types, payloads := make([]string, n), make([]uuid.UUID, n), make([]string, n), make([]string, n)
	for i := range n {
		keys[i], ids[i], types[i], payloads[i] = "s", at(10*(i+1)), "happened", fmt.Sprintf(`{"v": %d}`, i+1)
	}
	w.exec(`select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads)
}

// While a long stream is replayed, events go on arriving in it, late ones too: the replay is never started over, what it has folded is
// written, and what came late meanwhile costs only what lies behind it.
func TestAppendStormOnTheStreamThatIsRewound(t *testing.T) {
	t.Parallel()
	const n = 20000
	w := newWorld(t, worldOptions{})
	w.exec(repairSQL)
	w.appendMany(n)
	w.exec(`select from rewind.apply_perspective_batch('p', 0, 1000000)`)
	w.exec(`delete from rewind.perspective_snapshots`)
	w.append("s", testEvent{at: 5, v: 1})
	w.apply()
	w.exec(`select app.begin_repair()`)

	steps, phase := 0, ""
	for ; phase != "done"; steps++ {
		// In order, and late by a second.
		w.append("s", testEvent{at: 10*(n+1) + 1000*steps, v: steps})
		w.append("s", testEvent{at: 10*(n-100) + steps, v: steps})
		w.apply()
		phase = queryOne[string](t, w.pool, `update app.repairs set state = rewind._repair_step(state) returning (state).phase`)
	}
	replayed := queryOne[int64](t, w.pool, `select events_folded from rewind.perspective_rewinds`)
	if replayed != n+1+2 { // the first step's events had arrived when the head was chosen
		t.Errorf("the replay folded %d events of %d", replayed, n)
	}
	c := w.cursor("s")
	if c.AppliedVersion != n+1+2 || c.Status != 32 {
		t.Errorf("the prefix was not committed: %+v", c)
	}
	w.checkSound()
	w.catchUp()
	w.checkSettled()
	rest := queryOne[int64](t, w.pool, `select sum(events_folded)::bigint from rewind.perspective_rewinds where rewind_id > 1`)
	t.Logf("%d steps; what came late meanwhile cost %d events", steps, rest)
	if rest > n/20 {
		t.Errorf("what came late meanwhile cost %d events", rest)
	}
}
