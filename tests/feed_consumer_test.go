package tests

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

func trim(t testing.TB, pool *pgxpool.Pool, before rewind.Cursor) (all rewind.Trimmed) {
	t.Helper()
	for all.Left = 1; all.Left > 0; {
		part, err := rewind.TrimTree(ctxOf(t), pool, "t", before)
		if err != nil {
			t.Fatal(err)
		}
		part.Deleted += all.Deleted
		all = part
	}
	return all
}

func claim(t testing.TB, pool *pgxpool.Pool, owner string) rewind.Consumer {
	t.Helper()
	c, err := rewind.ClaimConsumer(ctxOf(t), pool, "reports", owner)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each record takes effect once: what a consumer writes, and that it read, are one transaction.
func TestConsumerIsExactlyOnce(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 3)
	appendSome(t, pool, 0, 30)
	mustExec(t, pool, `create table report (stream_key text primary key)`)
	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "t", rewind.Initial); err != nil {
		t.Fatal(err)
	}
	for attempt := 0; ; attempt++ {
		c := claim(t, pool, "worker")
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		at := c.Cursor
		for r, err := range rewind.Subscribe(t.Context(), tx, c.Tree, c.Cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `insert into report values ($1)`, r.StreamKey); err != nil {
				t.Fatal(err)
			}
			at = r.Cursor()
			if n++; n == 7 {
				break
			}
		}
		if err := c.Advance(t.Context(), tx, at); err != nil {
			t.Fatal(err)
		}
		if attempt%2 == 0 {
			err = tx.Rollback(t.Context())
		} else {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if n := queryOne[int](t, pool, `select count(*) from report`); n != 30 {
		t.Errorf("%d records took effect, want 30", n)
	}
}

func TestConsumerClaims(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 2)
	testdb.SetClock(t, pool, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	appendSome(t, pool, 0, 4)
	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "t", rewind.Initial, rewind.Lease(time.Minute)); err != nil {
		t.Fatal(err)
	}
	advance := func(c rewind.Consumer, to rewind.Cursor) error { return c.Advance(t.Context(), pool, to) }
	end := currentCursor(t, pool)

	a := claim(t, pool, "a")
	if _, err := rewind.ClaimConsumer(t.Context(), pool, "reports", "b"); !errors.Is(err, rewind.ErrLockHeld) {
		t.Errorf("claim of what another holds: %v", err)
	}
	again := claim(t, pool, "a")
	if err := advance(a, end); !errors.Is(err, rewind.ErrLockLost) {
		t.Errorf("advance with the token of before: %v", err)
	}
	testdb.Advance(t, pool, 50*time.Second)
	if err := advance(again, end); err != nil {
		t.Error("advance:", err)
	}
	testdb.Advance(t, pool, 50*time.Second)
	if _, err := rewind.ClaimConsumer(t.Context(), pool, "reports", "b"); !errors.Is(err, rewind.ErrLockHeld) {
		t.Errorf("claim of what an advance renewed: %v", err)
	}
	testdb.Advance(t, pool, 10*time.Second)
	if err := advance(again, end); !errors.Is(err, rewind.ErrLockLost) {
		t.Errorf("advance after the lease: %v", err)
	}
	b := claim(t, pool, "b")
	if b.Cursor.String() != end.String() {
		t.Errorf("the next owner goes on from %v, want %v", b.Cursor, end)
	}
	if err := advance(b, rewind.Initial); err == nil {
		t.Error("a consumer moves back")
	}

	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "t", rewind.Initial); err != nil {
		t.Error("create again:", err)
	}
	if c := claim(t, pool, "b"); c.Cursor.String() != end.String() {
		t.Errorf("created again, the consumer goes on from %v", c.Cursor)
	}
	mustExec(t, pool, `select rewind.create_tree('other')`)
	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "other", rewind.Initial); !errors.Is(err, rewind.ErrDefinitionConflict) {
		t.Errorf("create for another tree: %v", err)
	}
	for _, want := range []bool{true, false} {
		if dropped, err := rewind.DropConsumer(t.Context(), pool, "reports"); err != nil || dropped != want {
			t.Errorf("dropped %t (%v), want %t", dropped, err, want)
		}
	}
}

// A consumer that is alive holds back the trim; one that is not is passed, and told so when it returns.
func TestTrimAndConsumers(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 2)
	testdb.SetClock(t, pool, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	appendSome(t, pool, 0, 10)
	if err := rewind.CreateConsumer(t.Context(), pool, "reports", "t", rewind.Initial, rewind.Lease(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if r := trim(t, pool, currentCursor(t, pool)); r.Deleted != 0 || !slices.Equal(r.HeldBy, []string{"reports"}) || len(r.LeftBehind) != 0 {
		t.Errorf("trim with a consumer at the beginning: %+v", r)
	}
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", claim(t, pool, "a").Cursor))); n != 10 {
		t.Errorf("the consumer still has %d records before it, want 10", n)
	}
	testdb.Advance(t, pool, time.Minute)
	if r := trim(t, pool, currentCursor(t, pool)); len(r.HeldBy) != 0 || !slices.Equal(r.LeftBehind, []string{"reports"}) {
		t.Errorf("trim after the lease: %+v", r)
	}
	if _, err := rewind.ClaimConsumer(t.Context(), pool, "reports", "a"); !errors.Is(err, rewind.ErrCursorTrimmed) {
		t.Errorf("claim of a consumer that was left behind: %v", err)
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 2)
	// Streams of several records, so that all but the last of each can go.
	for round := range 5 {
		for i := range 6 {
			if _, err := rewind.Append(t.Context(), pool, "t", string(rune('a'+i)), []rewind.NewEvent{{Type: "tick", Payload: round}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := currentCursor(t, pool)
	wantCode(t, pool, "55000", `delete from rewind.wal`)

	// The floor is there with the first batch.
	first, err := pool.Query(t.Context(), `select records_deleted, records_left from rewind.trim_tree('t', $1, '{"max_records": 4}')`, end)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	wantCode(t, pool, "RW010", `select from rewind.read_feed('t')`)
	if left := queryOne[int](t, pool, `select count(*) from rewind.wal`); left < 20 {
		t.Errorf("a batch of 4 left %d of 30 records", left)
	}
	if r := trim(t, pool, end); r.Left != 0 {
		t.Errorf("trimmed: %+v", r)
	}
	if kept := queryOne[int](t, pool, `select count(*) from rewind.wal`); kept != 6 {
		t.Errorf("%d records are kept, want the last of each of 6 streams", kept)
	}
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", end))); n != 0 {
		t.Errorf("%d records after the end", n)
	}

	// The log goes on from where it was.
	places, err := rewind.Append(t.Context(), pool, "t", "a", []rewind.NewEvent{{Type: "tick"}})
	if err != nil || places[0].StreamVersion != 6 || places[0].Offset != end.Offsets()[places[0].Partition] {
		t.Errorf("appended after the trim: %+v, %v", places, err)
	}
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", end))); n != 1 {
		t.Errorf("%d records after the end of before, want 1", n)
	}
	if r := trim(t, pool, currentCursor(t, pool)); r.Deleted != 1 {
		t.Errorf("the next trim deletes %d records, want the one that was kept of the stream before", r.Deleted)
	}

	wantCode(t, pool, "RW011", `select from rewind.trim_tree('t', '{"offsets": {"0": 1000}}')`)
	mustExec(t, pool, `select rewind.create_tree('read', 1)`)
	mustExec(t, pool, `create function public.keep(model jsonb, event rewind.event) returns jsonb immutable language sql return model`)
	mustExec(t, pool, `select rewind.create_perspective('p', 'read', 'public.keep(jsonb, rewind.event)')`)
	wantCode(t, pool, "RW019", `select from rewind.trim_tree('read', null)`)
	wantCode(t, pool, "RW010", `select rewind.create_perspective('q', 't', 'public.keep(jsonb, rewind.event)')`)
}
