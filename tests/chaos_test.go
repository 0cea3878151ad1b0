package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/worker"
)

// gatedFoldSQL is foldSQL, but waits while a session holds the lock that has the name of the query that folds.
var gatedFoldSQL = strings.Replace(foldSQL, "begin\n", "begin\n  perform pg_advisory_xact_lock_shared(hashtext(substring(current_query() from 'name: (\\w+)')));\n", 1)

const closeGate = `select pg_advisory_xact_lock(hashtext($1))`

// Whichever session of a worker is ended, in the middle of what it does, nothing is lost and nothing is done twice.
func TestTerminatedSessions(t *testing.T) {
	t.Parallel()
	options := map[string]any{
		"inline_rewind_events": 5, "debounce_window": "0s", "rewind_share": 1, "snapshot_every_n_events": 20, "retry_backoff": "10ms",
		"stream_lock_timeout": "1s", "stream_lock_keepalive_interval": "100ms",
	}
	w := newWorld(t, worldOptions{partitions: 4, options: options})
	w.exec(gatedFoldSQL)
	var folding sync.RWMutex // held while folds in Go are to wait
	p := chainPerspective(options)
	p.Apply = func(model chainModel, event rewind.Event) (chainModel, error) {
		folding.RLock()
		defer folding.RUnlock()
		return applyChain(model, event)
	}
	const program = "worker"
	config := w.pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = program
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	// A batch of each perspective in each partition, so that those in SQL, held up, leave room for those in Go.
	k := newWorker(t, &world{t: t, pool: pool}, worker.Config{Concurrency: 8})
	register(t, k, p)
	stop := start(t, k)
	stopWriting := w.write(t, 2)

	const (
		blocked = `wait_event_type = 'Lock'`
		idle    = `state = 'idle in transaction'`
	)
	sessions := func(query, condition, what string) bool {
		return queryOne[int64](t, w.pool, `select count(`+what+`) from pg_stat_activity
			where datname = current_database() and application_name = $1 and query ~ $2 and `+condition, program, query) > 0
	}
	// endSession ends a session in the state that a case names. If the lock falls at a moment from which no session comes there (all
	// rewinds that a worker does at once wait for it, say), it returns false.
	endSession := func(gate, lock, query, condition string) bool {
		holder, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Rollback(context.Background())
		if condition == idle {
			folding.Lock()
			defer folding.Unlock()
		}
		if gate != "" {
			if _, err := holder.Exec(t.Context(), closeGate, gate); err != nil {
				t.Fatal(err)
			}
			if !within(time.Second, func() bool { return sessions("name: "+gate, blocked, "*") }) {
				return false
			}
		}
		if lock != "" {
			if _, err := holder.Exec(t.Context(), lock); err != nil {
				t.Fatal(err)
			}
		}
		return within(time.Second, func() bool { return sessions(query, condition, "nullif(pg_terminate_backend(pid), false)") })
	}
	for _, c := range []struct {
		name             string
		gate             string // closed before
		lock             string // taken before, when a session waits at the gate
		query, condition string // of the session to end
	}{
		{"sql_batch", "ApplyBatch", ``, "name: ApplyBatch", blocked},
		{"go_batch", "", ``, "name: ReadGoBatch", idle},
		{"go_batch_saving", "", `lock table rewind.perspective_partitions in share mode`, "name: WriteGoBatch", blocked},
		{"claim", "", `lock table rewind.perspective_stream_locks in share mode`, "name: ClaimPerspectiveRewinds", blocked},
		{"sql_replay", "ReplayPage", ``, "name: ReplayPage", blocked},
		{"go_replay", "", ``, "name: ReadReplay", `true`},
		{"keepalive", "ReplayPage", `lock table rewind.perspective_stream_locks in share mode`, "name: RenewStreamLock", blocked},
		{"completion", "", `lock table rewind.perspective_rewinds in share mode`, "name: CompleteCursorWork", blocked},
		{"poll", "", `lock table rewind.perspective_partitions in access exclusive mode`, "name: FindWork", blocked},
		{"listen", "", ``, "listen rewind_wake", `true`},
	} {
		for range 2 {
			t.Log(c.name)
			eventually(t, func() bool { return endSession(c.gate, c.lock, c.query, c.condition) })
		}
	}
	stopWriting()
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	k = newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(options))
	settle(t, w, k)
	w.checkSettled()
	if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
		t.Errorf("cursors (-SQL +Go):\n%s", diff)
	}
}

// Many workers on a log that is too small for them.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{2, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			options := map[string]any{"inline_rewind_events": 5, "debounce_window": "0s", "rewind_share": 1}
			w := newWorld(t, worldOptions{partitions: 2, options: options})
			random := rand.New(rand.NewPCG(uint64(workers), 1))
			for range 3 {
				w.appendRandomly(random, 60)
				var running sync.WaitGroup
				for range workers {
					k := newWorker(t, w, worker.Config{BatchSize: 10, Concurrency: 2})
					register(t, k, chainPerspective(options))
					running.Go(func() {
						if err := k.RunUntilIdle(t.Context()); err != nil {
							t.Errorf("run until idle: %v", err)
						}
					})
				}
				running.Wait()
				w.checkSettled()
				if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
					t.Errorf("cursors (-SQL +Go):\n%s", diff)
				}
			}
		})
	}
}

// The clock of a worker's host decides nothing, and none of its times is stored.
func TestWorkerClockIsOff(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"fast": time.Hour, "slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			w.exec(`select from rewind.create_perspective('patient', 't', 'app.chain(jsonb, rewind.event)',
				p_options => '{"inline_rewind_events": 0, "debounce_window": "30m", "max_debounce_window": "30m"}')`)
			w.exec(`select from rewind.set_options('{"startup_rewind_mode": "background"}')`)
			w.append("s", inOrder(20)...)
			w.apply()
			w.exec(`call rewind.catch_up('patient')`)
			w.append("s", testEvent{at: 5, v: 1}, testEvent{at: 6000, v: 1})
			url, here := w.pool.Config().ConnString(), time.Now()
			// In a bubble the clock goes only while nothing is under way, so that it can be set by waiting.
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(here.Add(off)))
				pool := testdb.Open(t, url)
				k := newWorker(t, &world{t: t, pool: pool}, worker.Config{NoListening: true})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := k.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
			})
			if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds where perspective_name = 'p'`); n != 1 {
				t.Errorf("%d rewinds, want 1", n)
			}
			if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds where perspective_name = 'patient'`); n != 0 {
				t.Errorf("%d rewinds before they are due", n)
			}
			w.exec(`call rewind.catch_up('patient')`)
			w.checkSettled()
			for _, column := range texts(t, w.pool, `
				select format('select count(*) from %I.%I where not (%I between now() - interval ''30 min'' and now() + interval ''30 min'')',
				  c.table_schema, c.table_name, c.column_name)
				from information_schema.columns c
				join information_schema.tables t using (table_schema, table_name)
				where c.table_schema in ('rewind', 'rewind_gen') and t.table_type = 'BASE TABLE' and c.data_type = 'timestamp with time zone'
				  and c.column_name not in ('first_event_at', 'last_event_at')`) {
				if n := queryOne[int64](t, w.pool, column); n > 0 {
					t.Errorf("%s: %d", column, n)
				}
			}
		})
	}
}

// A rewind that lost its stream lock to another one of its worker's name does not take that one's for its own.
func TestWorkersOfOneName(t *testing.T) {
	t.Parallel()
	w := stopWorld(t, map[string]any{"stream_lock_timeout": "1h"})
	var log entries
	k := newWorker(t, w, worker.Config{Name: "twin", Logger: log.logger()})
	folding, release := make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	p := chainPerspective(nil)
	p.Apply = func(model chainModel, event rewind.Event) (chainModel, error) {
		if strings.Contains(string(event.Payload), "12345") && begun.CompareAndSwap(false, true) {
			close(folding)
			<-release
		}
		return applyChain(model, event)
	}
	register(t, k, p)
	stop := start(t, k)
	w.append("s", inOrder(10)...)
	eventually(t, func() bool { return w.applied("g") == 10 })
	w.append("s", testEvent{at: 5, v: 12345})
	<-folding

	w.exec(`update rewind.perspective_stream_locks set expires_at = rewind._now()`)
	second := newWorker(t, w, worker.Config{Name: "twin"})
	register(t, second, chainPerspective(nil))
	settle(t, w, second)
	close(release)
	eventually(t, func() bool { return log.contains("stream lock lost, leaving the repair to its new holder") })
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds`); n != 1 {
		t.Errorf("%d rewinds, want the one that was not held up", n)
	}
	w.checkGo(t)
}
