package tests

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Once pause_perspective has returned, nothing is written to the perspective's models.
func TestPauseWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, w *world, tx pgx.Tx){
		"a batch": func(t *testing.T, w *world, tx pgx.Tx) {
			w.append("s", testEvent{at: 30, v: 3})
			if _, err := tx.Exec(t.Context(), `select from rewind.apply_perspective_batch('p', 0)`); err != nil {
				t.Fatal(err)
			}
		},
		"a completion": func(t *testing.T, w *world, tx pgx.Tx) {
			w.append("s", testEvent{at: 15, v: 3})
			w.apply()
			token, _, _ := w.claim()
			r := w.replay(token, false)
			if _, err := tx.Exec(t.Context(), completeSQL, r.args()...); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
			w.apply()
			tx := begin(t, w.pool, pgx.TxOptions{})
			write(t, w, tx)
			if n := queryOne[int64](t, w.pool, `select count(*) from rewind.pause_perspective('p', '{"wait": false}') where state = 'paused'`); n != 1 {
				t.Error("not paused without waiting")
			}
			w.exec(`select from rewind.resume_perspective('p')`)

			pausing := begin(t, w.pool, pgx.TxOptions{})
			pid := pausing.Conn().PgConn().PID()
			paused := make(chan error, 1)
			go func() {
				_, err := pausing.Exec(ctxOf(t), `select from rewind.pause_perspective('p')`)
				paused <- err
			}()
			waitUntilBlocked(t, w.pool, pid)
			commit(t, tx)
			if err := <-paused; err != nil {
				t.Fatal(err)
			}
			if n := queryOne[int64](t, w.pool, `select count(*) from rewind.apply_perspective_batch('p', 0)`); n != 0 {
				t.Error("a batch began while the perspective was being paused")
			}
			commit(t, pausing)
			wantCode(t, w.pool, "RW014", `select from rewind.apply_perspective_batch('p', 0)`)
		})
	}
}

// A completion that began before the pause, and gets its lock after it, writes nothing.
func TestCompletionMeetsPause(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 5)
	token, _, _ := w.claim()
	r := w.replay(token, false)
	pausing := begin(t, w.pool, pgx.TxOptions{})
	if _, err := pausing.Exec(t.Context(), `select from rewind.pause_perspective('p')`); err != nil {
		t.Fatal(err)
	}
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	completed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctxOf(t), completeSQL, r.args()...)
		completed <- err
	}()
	waitUntilBlocked(t, w.pool, conn.Conn().PgConn().PID())
	commit(t, pausing)
	var pgErr *pgconn.PgError
	if err := <-completed; !errors.As(err, &pgErr) || pgErr.Code != "RW014" {
		t.Errorf("the completion ended with %v, want RW014", err)
	}
}
