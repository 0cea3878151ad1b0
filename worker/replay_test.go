package worker

import (
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Pages end where those of a repair without a worker do.
func TestPageLimit(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	rows, err := pool.Query(t.Context(), `
		select r, n, rewind._page_limit(r, n, $1), rewind._is_ladder_step(r, n)
		from unnest(array[1, 3, 10]) n, generate_series(-1, 300) r
		union all
		select r, n, rewind._page_limit(r, n, $1), rewind._is_ladder_step(r, n)
		from unnest(array[10, 100]) n, unnest(array[9999, 10000, 10001, 655350, 655351, 1000000000000]) r`, maxPageEvents)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for ; rows.Next(); count++ {
		var remaining, n, limit int64
		var due bool
		if err := rows.Scan(&remaining, &n, &limit, &due); err != nil {
			t.Fatal(err)
		}
		if got := pageLimit(remaining, n); got != limit {
			t.Errorf("pageLimit(%d, %d) = %d, want %d", remaining, n, got, limit)
		}
		if got := isSnapshotDue(remaining, n); got != due {
			t.Errorf("isSnapshotDue(%d, %d) = %t, want %t", remaining, n, got, due)
		}
	}
	if rows.Err() != nil || count == 0 {
		t.Fatalf("%d rows: %v", count, rows.Err())
	}
}
