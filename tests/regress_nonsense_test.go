package tests

import "testing"

// Arguments that make no sense were errors of the inside (23502), or found nothing.
func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	generation := queryOne[int32](t, w.pool, `select active_generation from rewind.perspectives`)
	w.append("s", testEvent{at: 10, v: 1})
	w.apply()
	lock := `select rewind.claim_perspective_stream_lock($1, rewind.stream_id('t', $2), $3, $4)`
	wantCode(t, w.pool, "22023", lock, generation, nil, "o", "r")
	wantCode(t, w.pool, "22023", lock, generation, "s", nil, "r")
	wantCode(t, w.pool, "22023", lock, generation, "s", "o", nil)
	wantCode(t, w.pool, "22023", `select from rewind.claim_perspective_rewinds(null)`)
	claim := `select from rewind.claim_perspective_rewinds('w', p_options => $1::text::jsonb)`
	w.exec(claim, `{"generations": [1, 2]}`)
	w.exec(claim, `{"generations": []}`)
	wantCode(t, w.pool, "22023", claim, `{"generations": ["x"]}`)
	wantCode(t, w.pool, "22023", claim, `{"generations": 1}`)
	store := `select from rewind.store_perspective_events($1, $2, $3, $4)`
	wantCode(t, w.pool, "RW018", store, generation, 99, 0, 1)
	wantCode(t, w.pool, "RW018", store, generation, nil, 0, 1)
	wantCode(t, w.pool, "22023", store, generation, 0, nil, 1)
	wantCode(t, w.pool, "22023", store, generation, 0, 1, 0)
}
