package tests

import (
	"testing"
)

// While another session held a partition, catch_up asked for it again and again without a pause.
func TestCatchUpPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	holder, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(t.Context())
	if _, err := holder.Exec(t.Context(), `select from rewind.perspective_partitions for update`); err != nil {
		t.Fatal(err)
	}
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	pid := int32(conn.Conn().PgConn().PID())
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), `call rewind.catch_up('p')`)
		done <- err
	}()
	eventually(t, func() bool {
		return queryOne[bool](t, w.pool, `select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')`, pid)
	})
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.checkSettled()
}

// With nothing to read, catch_up said nothing about a perspective that it can't run, and claimed repairs of Go perspectives.
func TestCatchUpRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.register_perspective('g', 't')`)
	wantCode(t, w.pool, "22023", `call rewind.catch_up('g')`)
	w.exec(`select from rewind.pause_perspective('p')`)
	wantCode(t, w.pool, "RW014", `call rewind.catch_up('p')`)
	w.exec(`select from rewind.resume_perspective('p')`)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `set transaction isolation level repeatable read`); err != nil {
		t.Fatal(err)
	}
	wantCode(t, tx, "RW020", `call rewind.catch_up('p')`)
}
