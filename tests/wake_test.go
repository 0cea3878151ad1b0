package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

// newSleeper starts a worker that looks for work once an hour, and waits until it waits to be woken.
func newSleeper(t *testing.T, w *world) (stop func() error) {
	t.Helper()
	stop = start(t, newWorker(t, w, worker.Config{PollInterval: time.Hour}))
	w.waitForWaiting(t)
	return stop
}

func (w *world) waitForWaiting(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		return queryOne[int64](t, w.pool, `select count(*) from rewind.workers where waiting_since is not null`) == 1
	})
}

func TestWake(t *testing.T) {
	t.Parallel()
	events := []rewind.NewEvent{{Type: "x", Payload: map[string]int{"v": 1}}}
	for name, appendAndWake := range map[string]func(*testing.T, *world){
		"by_sql": func(t *testing.T, w *world) {
			w.append("s", testEvent{at: 1, v: 1})
			if !queryOne[bool](t, w.pool, `select rewind.wake('t')`) {
				t.Error("nobody was woken")
			}
		},
		"by_append_on_pool": func(t *testing.T, w *world) {
			if _, err := rewind.Append(t.Context(), w.pool, "t", "s", events); err != nil {
				t.Fatal(err)
			}
		},
		"after_transaction": func(t *testing.T, w *world) {
			err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
				_, err := rewind.Append(t.Context(), tx, "t", "s", events)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			w.waitForWaiting(t) // an append in a transaction wakes nobody, since it isn't committed yet
			if err := rewind.Wake(t.Context(), w.pool, "t"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			stop := newSleeper(t, w)
			appendAndWake(t, w)
			eventually(t, func() bool { return w.applied("p") == 1 })
			if err := stop(); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
}

// Nothing is notified when nobody waits.
func TestWakeIsSilentWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	conn, err := pgx.ConnectConfig(t.Context(), w.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `listen rewind_wake`); err != nil {
		t.Fatal(err)
	}
	var woken sync.Map
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() { woken.Store(i, queryOne[bool](t, w.pool, `select rewind.wake('t')`)) })
	}
	callers.Wait()
	woken.Range(func(_, v any) bool {
		if v.(bool) {
			t.Error("somebody was woken")
		}
		return true
	})
	// Notifications come in order: a first one from here shows that there was none before.
	w.exec(`notify rewind_wake, 'from the test'`)
	notification, err := conn.WaitForNotification(t.Context())
	if err != nil || notification.Payload != "from the test" {
		t.Errorf("notified: %+v, %v", notification, err)
	}
	wantCode(t, w.pool, "RW005", `select rewind.wake('nowhere')`)
}

// Without a listener, polling finds what is to be done.
func TestPollingWithoutListener(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	stop := start(t, newWorker(t, w, worker.Config{MaxPollInterval: 300 * time.Millisecond}))
	w.waitForWaiting(t)
	killed := queryOne[int64](t, w.pool, `
		select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query = 'listen rewind_wake'`)
	if killed != 1 {
		t.Errorf("%d listeners, want 1", killed)
	}
	w.append("s", testEvent{at: 1, v: 1})
	eventually(t, func() bool { return w.applied("p") == 1 })
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}

	stop = start(t, newWorker(t, w, worker.Config{NoListening: true}))
	w.append("s", testEvent{at: 2, v: 1})
	eventually(t, func() bool { return w.applied("p") == 2 })
	if n := queryOne[int64](t, w.pool, `select count(*) from pg_stat_activity where datname = current_database() and query = 'listen rewind_wake'`); n > 0 {
		t.Errorf("%d sessions listen, want none", n)
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
}
