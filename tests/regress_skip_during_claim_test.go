package tests

import "testing"

// A repair that began while a skip was being committed folded the event, and then made the skip count.
func TestSkipDuringClaim(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	skip, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer skip.Rollback(t.Context())
	if _, err := skip.Exec(t.Context(), `select from rewind.skip_perspective_event('p', 's', $1, 'bad data')`, w.cursor("s").LastEventID); err != nil {
		t.Fatal(err)
	}
	claim := func() *int64 {
		t.Helper()
		return queryOne[*int64](t, w.pool, `select (select token from rewind.claim_perspective_rewinds('tester'))`)
	}
	token := claim()
	if token != nil {
		r := w.replay(*token, false)
		if err := skip.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.complete(r)
	} else {
		if err := skip.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.complete(w.replay(*claim(), false))
	}
	if found := w.verify(); len(found) > 0 {
		t.Errorf("verify_perspective: %v", found)
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_stream_locks`); n > 0 {
		t.Errorf("%d stream locks are left", n)
	}
}

// A skip that is there already leaves the lock of a repair alone, and none of its own behind.
func TestSkipAgainLeavesLocks(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	skip := `select from rewind.skip_perspective_event('p', 's', $1, 'bad data')`
	w.exec(skip, firstEvent(t, w))
	w.exec(skip, firstEvent(t, w))
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_stream_locks`); n > 0 {
		t.Errorf("%d stream locks are left", n)
	}
	token, _, _ := w.claim()
	w.exec(skip, firstEvent(t, w))
	w.complete(w.replay(token, false))
	if found := w.verify(); len(found) > 0 {
		t.Errorf("verify_perspective: %v", found)
	}
}
