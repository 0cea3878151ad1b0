package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/worker"
)

// newTwoGenerations is a perspective in two generations, of which the second is shown; the first one's stream s owes a late event, and is claimed.
func newTwoGenerations(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 30, v: 3})
	w.catchUp()
	w.exec(`select from rewind.begin_perspective_rebuild('p')`)
	w.exec(`select from rewind.apply_perspective_batch('p', 0, p_generation => 2)`)
	w.exec(`select from rewind.finish_perspective_rebuild('p')`)
	w.append("s", testEvent{at: 20, v: 2})
	w.exec(`select from rewind.apply_perspective_batch('p', 0, p_generation => 1)`)
	if owner := queryOne[string](t, w.pool, `select rewind.claim_perspective_stream_lock(1, rewind.stream_id('t', 's'), 'w', 'rewind')::text`); owner == "" || w.active("p") != 2 {
		t.Fatalf("generation %d is shown", w.active("p"))
	}
	return w
}

const skipLateSQL = `select from rewind.skip_perspective_event('p', 's', (select event_id from rewind.wal where payload = '{"v": 2}'), 'a test')`

// A repair of another generation that is claimed while a skip is not committed yet would fold the event, and nothing would take it out again.
func TestSkipBesideClaim(t *testing.T) {
	t.Parallel()
	w := newTwoGenerations(t)
	w.exec(`delete from rewind.perspective_stream_locks`)
	skipping, claiming := begin(t, w.pool, pgx.TxOptions{}), begin(t, w.pool, pgx.TxOptions{})
	if _, err := skipping.Exec(t.Context(), skipLateSQL); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		if _, err := claiming.Exec(t.Context(), `select rewind.claim_perspective_stream_lock(1, rewind.stream_id('t', 's'), 'w', 'rewind')`); err != nil {
			t.Error(err)
		}
	}()
	waitUntilBlocked(t, w.pool, claiming.Conn().PgConn().PID())
	commit(t, skipping)
	<-claimed
	if err := claiming.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	runUntilIdle(t, w, worker.Config{})
	w.verified("p", 1)
	w.verified("p", 2)
}

// Who skips an event takes locks in the order in which who pauses or drops something does.
func TestSkipDoesntDeadlock(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"pause": `select rewind.pause_perspective('p')`,
		"drop":  `select rewind.drop_perspective_generation('p', 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwoGenerations(t)
			// What is waited for is a batch of the first generation.
			batch := begin(t, w.pool, pgx.TxOptions{})
			if _, err := batch.Exec(t.Context(), `select from rewind.apply_perspective_batch('p', 0, p_generation => 1)`); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			for _, statement := range []string{skipLateSQL, other} {
				tx := begin(t, w.pool, pgx.TxOptions{})
				pid := tx.Conn().PgConn().PID()
				go func() {
					_, err := tx.Exec(t.Context(), statement)
					if err == nil {
						err = tx.Commit(t.Context())
					}
					ended <- err
				}()
				waitUntilBlocked(t, w.pool, pid)
			}
			commit(t, batch)
			for range 2 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A lock is its holder's, whatever the holder calls it.
func TestSkipAgainLeavesAnyLock(t *testing.T) {
	t.Parallel()
	w := newTwoGenerations(t)
	w.exec(`select from rewind.apply_perspective_batch('p', 0, p_generation => 2)`)
	w.exec(skipLateSQL)
	w.exec(`delete from rewind.perspective_stream_locks`)
	w.exec(`select rewind.claim_perspective_stream_lock(2, rewind.stream_id('t', 's'), 'exclusive', 'exclusive')`)
	w.exec(skipLateSQL)
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_stream_locks`); n != 1 {
		t.Errorf("%d stream locks are left", n)
	}
}

// A worker claims repairs in the order of their debts, those of one stream in several generations too, and waits for nobody meanwhile.
func TestClaimPassesBySkip(t *testing.T) {
	t.Parallel()
	w := newTwoGenerations(t)
	w.exec(`delete from rewind.perspective_stream_locks`)
	w.exec(`select from rewind.apply_perspective_batch('p', 0, p_generation => 2)`)
	skipping := begin(t, w.pool, pgx.TxOptions{})
	if _, err := skipping.Exec(t.Context(), skipLateSQL); err != nil {
		t.Fatal(err)
	}
	const claim = `select count(*) from rewind.claim_perspective_rewinds('w', 3)`
	if n := queryOne[int](t, w.pool, claim); n != 0 {
		t.Errorf("%d repairs are claimed of a stream that a skip holds", n)
	}
	commit(t, skipping)
	if n := queryOne[int](t, w.pool, claim); n != 2 {
		t.Errorf("%d repairs are claimed, one in each generation is due", n)
	}
}
