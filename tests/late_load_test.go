package tests

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

// Streams of five events a second each, of which one in five is late by up to three seconds: with the defaults, and a live path that
// reads every tenth of a second, at most four events are folded for each one.
func TestLateLoadFoldsFewEvents(t *testing.T) {
	t.Parallel()
	const streams, perTick, ticks, maxLate = 200, 100, 300, 3000
	w := newWorld(t, worldOptions{options: map[string]any{
		"inline_rewind_events": nil, "debounce_window": nil, "rewind_share": nil}})
	r := rand.New(rand.NewPCG(5, 6))
	folded, late := int64(0), 0
	for tick := range ticks {
		keys, ids, types, payloads := make([]string, perTick), make([]uuid.UUID, perTick), make([]string, perTick), make([]string, perTick)
		for i := range perTick {
			// Every other stream in every other tick: five a second.
			keys[i], types[i] = fmt.Sprint("s", (2*i+tick%2)%streams), "happened"
			happened := 100*tick + r.IntN(100)
			if r.IntN(5) == 0 {
				happened -= r.IntN(maxLate)
				late++
			}
			ids[i], payloads[i] = at(happened), fmt.Sprintf(`{"v": %d}`, tick)
		}
		w.exec(`select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads)
		folded += queryOne[int64](t, w.pool, `select events_folded from rewind.apply_perspective_batch('p', 0, 10000)`)
	}
	w.catchUp()
	folded += queryOne[int64](t, w.pool, `select coalesce(sum(events_folded), 0)::bigint from rewind.perspective_rewinds`)
	const events = perTick * ticks
	t.Logf("%.2f events folded per event, of which %d %% were late", float64(folded)/events, 100*late/events)
	if folded > 4*events {
		t.Errorf("%.2f events folded per event, want at most 4", float64(folded)/events)
	}
	w.checkSettled()
}
