package tests

import (
	"testing"
	"time"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestClock(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	testdb.SetClock(t, pool, noon)
	testdb.Advance(t, pool, 90*time.Second)

	var now time.Time
	if err := pool.QueryRow(t.Context(), `select rewind._now()`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	if want := noon.Add(90 * time.Second); !now.Equal(want) {
		t.Errorf("the clock says %v, want %v", now, want)
	}
}
