package tests

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

// A standby that lags is behind a cursor of its primary: a reader waits there. Promoted like that it has another history, and says so.
func TestFeedOnStandby(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	if _, err := exec.LookPath(server.Program("pg_basebackup")); err != nil {
		missing(t, "pg_basebackup beside the server's programs")
		return
	}
	if _, err := migrateUp(t.Context(), server.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	primary := testdb.Open(t, server.URL("postgres"))
	createTree(t, primary, 3)
	appendSome(t, primary, 0, 20)
	standby := testdb.Open(t, testdb.NewStandby(t, server).URL("postgres"))
	read := func(pool *pgxpool.Pool, from rewind.Cursor) []spot {
		t.Helper()
		return spots(t, rewind.Subscribe(t.Context(), pool, "t", from))
	}
	wantSame := func(from rewind.Cursor, records int) {
		t.Helper()
		want := read(primary, from)
		if len(want) != records {
			t.Errorf("%d records after %v, want %d", len(want), from, records)
		}
		eventually(t, func() bool { return len(read(standby, from)) == len(want) })
		if !slices.Equal(want, read(standby, from)) || !slices.Equal(want, sqlFeed(t, standby, from, nil, 7, `{}`)) {
			t.Errorf("after %v the standby has other records than its primary", from)
		}
	}
	// wantWait reads on the standby from a cursor that it hasn't come to.
	wantWait := func(from rewind.Cursor) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		n, err := 0, error(nil)
		for _, err = range rewind.Subscribe(ctx, standby, "t", from) {
			n++
		}
		if n != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read on a standby that lags: %v", err)
		}
		if page := sqlFeed(t, standby, from, nil, 10, `{}`); len(page) != 0 {
			t.Errorf("a page on a standby that lags has %d records", len(page))
		}
		if until := sqlFeed(t, standby, nil, from, 10, `{}`); !slices.Equal(until, read(standby, rewind.Initial)) {
			t.Errorf("up to a cursor that the standby hasn't come to: %d records", len(until))
		}
	}
	wantSame(rewind.Initial, 20)
	middle := currentCursor(t, standby)

	mustExec(t, standby, `select pg_wal_replay_pause()`)
	eventually(t, func() bool { return queryOne[string](t, standby, `select pg_get_wal_replay_pause_state()`) == "paused" })
	appendSome(t, primary, 20, 10)
	ahead := currentCursor(t, primary)
	wantWait(ahead)
	moveTree(t, primary, 1)
	moved := currentCursor(t, primary)
	wantWait(moved)
	appendSome(t, primary, 30, 5)
	end := currentCursor(t, primary)
	wantWait(end)
	followed := make(chan []spot, 1)
	go func() {
		var all []spot
		for r, err := range rewind.Follow(t.Context(), standby, "t", ahead) {
			if err != nil {
				t.Error(err)
				break
			}
			if all = append(all, spot{r.HLC, r.Partition, r.Offset}); len(all) == 7 {
				break
			}
		}
		followed <- all
	}()
	mustExec(t, standby, `select pg_wal_replay_resume()`)
	wantSame(middle, 15)
	wantSame(ahead, 5)
	wantSame(moved, 5)
	wantSame(end, 0)
	appendSome(t, primary, 35, 2)
	if got := <-followed; !slices.Equal(got, read(primary, ahead)) {
		t.Errorf("followed on the standby: %v", got)
	}
	wantSame(end, 2)

	// What it never got is lost when it is promoted.
	mustExec(t, standby, `alter system set primary_conninfo = ''`)
	mustExec(t, standby, `select pg_reload_conf()`)
	eventually(t, func() bool { return queryOne[int](t, standby, `select count(*) from pg_stat_wal_receiver`) == 0 })
	appendSome(t, primary, 40, 3)
	lost := currentCursor(t, primary)
	wantWait(lost)
	mustExec(t, standby, `select pg_promote()`)
	wantFeedError(t, standby, lost, "RW011", rewind.ErrCursorAhead)
	appendSome(t, standby, 50, 5)
	wantFeedError(t, standby, lost, "RW012", rewind.ErrCursorOfOtherHistory)
	if n := len(read(standby, end)); n != 7 {
		t.Errorf("%d records after a place that was not lost, want 7", n)
	}
}
