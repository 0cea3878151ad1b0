package tests

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Wherever late events fall, the snapshots of a stream stay few, and a replay folds at most twice the depth of its late event and the
// spacing: in streams that grow, on the rewind path and inline.
func TestLadderBoundsReplays(t *testing.T) {
	t.Parallel()
	const n, every, spacing = 1000, 50, 10
	for name, depth := range map[string]func(r *rand.Rand, events int) int{
		"near":        func(r *rand.Rand, events int) int { return min(r.IntN(20), events-1) },
		"exponential": func(r *rand.Rand, events int) int { return min(int(r.ExpFloat64()*200), events-1) },
		"log-uniform": func(r *rand.Rand, events int) int { return int(math.Exp(r.Float64()*math.Log(float64(events)))) - 1 },
		"uniform":     func(r *rand.Rand, events int) int { return r.IntN(events) },
		// Right before a snapshot that was saved just now, wherever those are.
		"adversarial": func(r *rand.Rand, events int) int { return min(spacing*(1<<r.IntN(10)-1)+1, events-1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, inline := range map[string]int{"rewind path": 0, "inline": 1000000} {
				w := newWorld(t, worldOptions{options: map[string]any{
					"inline_rewind_events": inline, "narrate_inline_rewinds": true, "snapshot_every_n_events": every, "rewind_snapshot_interval_events": spacing,
				}})
				r := rand.New(rand.NewPCG(3, 4))
				events, at := 0, 0
				for events < n {
					batch := make([]testEvent, 1+r.IntN(n/50))
					for i := range batch {
						at += 10000
						batch[i] = testEvent{at: at, v: events + i}
					}
					w.append("s", batch...)
					events += len(batch)
					w.apply()
					for range 2 {
						// After the event that has d younger ones.
						id := queryOne[string](t, w.pool, `select event_id::text from rewind.wal where stream_id = rewind.stream_id('t', 's') order by event_id desc offset $1 limit 1`, depth(r, events))
						w.exec(`select from rewind.append_events('t', 's', jsonb_build_array(jsonb_build_object('type', 'happened', 'payload', jsonb_build_object('v', $2::int),
							'time', to_char(rewind.event_time($1::uuid) + interval '0.5 ms', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))))`, id, events)
						events++
						w.catchUp()
					}
				}
				w.checkSettled()
				for _, over := range texts(t, w.pool, `
					select format('%s behind, %s replayed', events_behind, events_replayed) from rewind.perspective_rewinds
					where events_replayed > 2 * (events_behind + 1) + 50`) {
					t.Errorf("%s: %s", path, over)
				}
				if most := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_snapshots`); most > 24 {
					t.Errorf("%s: %d snapshots", path, most)
				}
				t.Logf("%s: %s", path, queryOne[string](t, w.pool, `select format('%s late, %s replayed of %s', count(*), sum(events_replayed), $1::int) from rewind.perspective_rewinds`, events))
			}
		})
	}
}
