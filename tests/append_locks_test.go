package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
)

// streamIn returns the key of a stream that lives in a partition of tree "t".
func streamIn(t testing.TB, pool *pgxpool.Pool, partition int) string {
	t.Helper()
	return queryOne[string](t, pool, `
		select 'in-' || p::text || '-' || i::text
		from rewind.trees t, cast($1 as int) p, generate_series(1, 10000) i
		where t.tree_name = 't'
		  and rewind._stream_partition(rewind.stream_id('t', 'in-' || p::text || '-' || i::text), t.first_partition, t.partitions) = p
		limit 1`, partition)
}

func begin(t testing.TB, pool *pgxpool.Pool, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(ctxOf(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
}

func heldLocks(t testing.TB, tx pgx.Tx) int64 {
	t.Helper()
	return queryOne[int64](t, tx, `select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted`)
}

func TestAppendLocks(t *testing.T) {
	t.Parallel()

	t.Run("are taken back with a savepoint", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 4)
		low, high := streamIn(t, pool, 1), streamIn(t, pool, 3)
		other, tx := begin(t, pool, pgx.TxOptions{}), begin(t, pool, pgx.TxOptions{})

		inner, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		appendJSON(t, inner, high, `[{"type":"a"}]`)
		if err := inner.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := heldLocks(t, tx); n != 0 {
			t.Errorf("%d locks are left after the rollback", n)
		}
		// So the lower partition is waited for, not refused.
		appendJSON(t, other, low, `[{"type":"a"}]`)
		done := make(chan error)
		pid := tx.Conn().PgConn().PID()
		go func() {
			_, err := tx.Exec(context.Background(), `select rewind.append_events('t', $1, '[{"type":"b"}]')`, low)
			done <- err
		}()
		waitUntilBlocked(t, pool, pid)
		commit(t, other)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		commit(t, tx)
		wantDense(t, pool)
	})

	t.Run("out of order are taken if free and else refused at once", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 4)
		low, high := streamIn(t, pool, 1), streamIn(t, pool, 3)
		tx := begin(t, pool, pgx.TxOptions{})
		appendJSON(t, tx, high, `[{"type":"a"}]`)
		appendJSON(t, tx, low, `[{"type":"a"}]`)
		appendJSON(t, tx, high, `[{"type":"b"}]`)
		appendJSON(t, tx, low, `[{"type":"b"}]`)

		other := begin(t, pool, pgx.TxOptions{})
		appendJSON(t, other, streamIn(t, pool, 2), `[{"type":"a"}]`)
		err := wantCode(t, other, "40001", `select rewind.append_events('t', $1, '[{"type":"b"}]')`, low)
		if err.Hint == "" {
			t.Error("no hint")
		}
		commit(t, tx)

		// A tree of higher number comes after all partitions of this one.
		mustExec(t, pool, `select rewind.create_tree('u', 1)`)
		tx, other = begin(t, pool, pgx.TxOptions{}), begin(t, pool, pgx.TxOptions{})
		appendJSON(t, other, low, `[{"type":"c"}]`)
		if _, err := tx.Exec(t.Context(), `select rewind.append_events('u', 's', '[{"type":"a"}]')`); err != nil {
			t.Fatal(err)
		}
		wantCode(t, tx, "40001", `select rewind.append_events('t', $1, '[{"type":"c"}]')`, low)
		wantDense(t, pool)
	})

	t.Run("are taken beforehand by lock_streams", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 4)
		streams := []string{streamIn(t, pool, 3), streamIn(t, pool, 1), streamIn(t, pool, 3), streamIn(t, pool, 0)}
		tx := begin(t, pool, pgx.TxOptions{})
		if err := rewind.LockStreams(t.Context(), tx, "t", streams); err != nil {
			t.Fatal(err)
		}
		if n := heldLocks(t, tx); n != 3 {
			t.Errorf("%d locks, want 3", n)
		}
		for _, s := range streams {
			appendJSON(t, tx, s, `[{"type":"a"}]`)
		}
		commit(t, tx)
		wantCode(t, pool, "RW005", `select rewind.lock_streams('nowhere', '{a}')`)
		wantCode(t, pool, "22023", `select rewind.lock_streams('t', '{a}', '{"unknown": 1}')`)
		wantCode(t, pool, "22023", `select rewind.lock_streams('t', array[repeat('x', 501)])`)
		wantCode(t, pool, "22023", `select rewind.lock_streams('t', array[null])`)
		mustExec(t, pool, `select rewind.lock_streams('t', '{}')`)
	})

	t.Run("last through PREPARE TRANSACTION", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		for i, end := range []string{"commit", "rollback"} {
			name := fmt.Sprintf("%s_%d", end, pool.Config().ConnConfig.Port) + pool.Config().ConnConfig.Database
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{
				`begin`, `select rewind.append_events('t', 's', '[{"type":"a"},{"type":"b"}]')`, `prepare transaction '` + name + `'`,
			} {
				if _, err := conn.Exec(t.Context(), s); err != nil {
					t.Fatal(s, err)
				}
			}
			conn.Release()
			done := make(chan error)
			other, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := other.Exec(context.Background(), `select rewind.append_events('t', 's', '[{"type":"c"}]')`)
				done <- err
			}()
			waitUntilWaiting(t, pool, other.Conn().PgConn().PID())
			mustExec(t, pool, end+` prepared '`+name+`'`)
			if err := <-done; err != nil {
				t.Error(err)
			}
			other.Release()
			wantDense(t, pool)
			if n, want := queryOne[int64](t, pool, `select count(*) from rewind.wal`), int64(3+i); n != want {
				t.Errorf("after %s prepared: %d records, want %d", end, n, want)
			}
		}
	})
}

// Appends with a snapshot from before are either right or ask for a retry: single events, many, batches, known ids and new streams.
func TestAppendIsolation(t *testing.T) {
	t.Parallel()
	id := at(1)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for name, call := range map[string]string{
			"single":     `select rewind.append_events('t', 's', '[{"type":"a"}]')`,
			"many":       `select rewind.append_events('t', 's', '[{"type":"a"},{"type":"b"}]')`,
			"batch":      `select rewind.append_batch('t', '{r,s}', '{null,null}', '{a,b}', array[null, null]::jsonb[])`,
			"known id":   `select rewind.append_events('t', 's', '[{"type":"a","event_id":"` + id.String() + `"}]')`,
			"new stream": `select rewind.append_events('t', 'n', '[{"type":"a"}]')`,
		} {
			for _, stale := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stale=%v", level, name, stale), func(t *testing.T) {
					t.Parallel()
					pool := newLog(t, 1)
					appendJSON(t, pool, "s", `[{"type":"first"}]`)
					tx := begin(t, pool, pgx.TxOptions{IsoLevel: level})
					queryOne[int64](t, tx, `select count(*) from rewind.wal`)
					if stale {
						mustExec(t, pool, call)
					}
					_, err := tx.Exec(t.Context(), call)
					if err == nil {
						err = tx.Commit(t.Context())
					}
					var pgErr *pgconn.PgError
					if stale && (!errors.As(err, &pgErr) || pgErr.Code != "40001") || !stale && err != nil {
						t.Errorf("stale %v: %v", stale, err)
					}
					if err := tx.Rollback(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
						t.Error(err)
					}
					tx = begin(t, pool, pgx.TxOptions{IsoLevel: level})
					if _, err := tx.Exec(t.Context(), call); err != nil {
						t.Error("tried again:", err)
					}
					commit(t, tx)
					wantDense(t, pool)
				})
			}
		}
	}
}
