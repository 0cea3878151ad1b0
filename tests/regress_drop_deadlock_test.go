package tests

import (
	"testing"
)

// Whoever holds the table of snapshots may want that of the models next, or the other way round: what drops a generation waits for both, and
// was or made a deadlock's victim.
func TestDropBesideWorkOnModels(t *testing.T) {
	t.Parallel()
	tables := []string{"perspective_snapshots", "perspective_cursors"}
	for i, first := range tables {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			dropping, err := w.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer dropping.Release()
			working, err := w.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer working.Rollback(ctxOf(t)) // does nothing after a commit
			lock := func(table string) {
				t.Helper()
				if _, err := working.Exec(t.Context(), `lock table rewind.`+table+` in row exclusive mode`); err != nil {
					t.Error(err)
				}
			}
			lock(first)
			done := make(chan error, 1)
			go func() {
				_, err := dropping.Exec(t.Context(), `select rewind.drop_perspective('p')`)
				done <- err
			}()
			waitUntilBlocked(t, w.pool, dropping.Conn().PgConn().PID())
			lock(tables[1-i])
			if err := working.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
