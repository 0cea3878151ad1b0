package tests

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// fullSize is for tests that take minutes at the size that their promise names.
var fullSize = os.Getenv("REWIND_TEST_FULL_SIZE") != ""

func patience() time.Duration {
	if fullSize {
		return 15 * time.Minute
	}
	return 30 * time.Second
}

// eventually waits for a condition.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	if !within(patience(), condition) {
		t.Fatal("it did not come true")
	}
}

// within waits until a condition is true; it returns false if that takes longer.
func within(wait time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(wait); !condition(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
	return true
}

// waitUntilBlocked waits until a session waits for a lock that another session holds.
func waitUntilBlocked(t testing.TB, pool *pgxpool.Pool, pid uint32) {
	t.Helper()
	eventually(t, func() bool {
		return queryOne[bool](t, pool, `select cardinality(pg_blocking_pids($1)) > 0`, int32(pid))
	})
}

// waitUntilWaiting waits until a session waits for an advisory lock, be the holder a session or a prepared transaction.
func waitUntilWaiting(t testing.TB, pool *pgxpool.Pool, pid uint32) {
	t.Helper()
	eventually(t, func() bool {
		return queryOne[bool](t, pool, `select exists (select from pg_locks where pid = $1 and locktype = 'advisory' and not granted)`, int32(pid))
	})
}
