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
	claimer, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer claimer.Release()
	claimed := make(chan int64, 1)
	pid := int32(claimer.Conn().PgConn().PID())
	go func() {
		claimed <- queryOne[int64](t, claimer, `select token from rewind.claim_perspective_rewinds('tester')`)
	}()
	eventually(t, func() bool {
		return len(claimed) > 0 || queryOne[bool](t, w.pool, `select cardinality(pg_blocking_pids($1)) > 0`, pid)
	})
	if len(claimed) > 0 {
		r := w.replay(<-claimed, false)
		if err := skip.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.complete(r)
	} else {
		if err := skip.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.complete(w.replay(<-claimed, false))
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
