package tests

import "testing"

// A completion without a token passed the fence of a stream that nobody had locked.
func TestCompletionWithoutLock(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	r := w.replay(0, false)
	args := r.args()
	args[1] = nil
	wantCode(t, w.pool, "RW008", completeSQL, args...)
	w.checkSound()
}

// A completion of a stream without a cursor failed with an error of the inside (P0002).
func TestCompletionWithoutCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	generation := queryOne[int32](t, w.pool, `select active_generation from rewind.perspectives`)
	token := queryOne[int64](t, w.pool, `select rewind.claim_perspective_stream_lock($1, rewind.stream_id('t', 's'), 'o', 'r')`, generation)
	wantCode(t, w.pool, "RW013", completeSQL, generation, token, map[string]any{}, nil, 0, 0, nil)
}
