package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rewindpg/rewind/worker"
)

// operations are what operators may do at any time, each with the codes with which it may be refused then.
var operations = []struct{ sql, codes string }{
	{`select from rewind.repartition_tree('t', 1 + (random() * 9)::int)`, "22023 55P03"},
	{`select from rewind.create_tree('next', 5), rewind.repoint_tree('t', 'next')`, "22023 55P03 42710 RW019"},
	{`select from rewind.begin_perspective_rebuild($1, 'blue-green')`, "RW009 55P03 55006 RW014"},
	{`select from rewind.begin_perspective_rebuild($1, 'in-place')`, "RW009 55P03 RW014"},
	{`select from rewind.begin_perspective_rebuild($1, 'streams', array['s1', 's2', 's3'])`, "RW009 55P03 RW014 22023"},
	{`select from rewind.abort_perspective_rebuild($1)`, "22023 55P03"},
	{`select from rewind.rollback_perspective($1)`, "22023 RW009 RW014"},
	{`select from rewind.finish_perspective_rebuild($1)`, "22023 55P03 RW014"},
	{`select from rewind.reset_perspective_cursor($1, 's' || (random() * 40)::int)`, "40001 22023 RW013 RW014"},
	{`select from rewind.request_perspective_rewind($1, 's' || (random() * 40)::int)`, "40001 22023 RW013 RW014"},
	{`select from rewind.retry_perspective_stream($1, 's' || (random() * 40)::int)`, "40001 22023 RW013 RW014"},
	{`select 1 / (count(*) = 0)::int from rewind.verify_perspective($1, p_options => '{"sample": 0.3, "repair": true}')`, "RW014"},
	{`select 1 / (count(*) = 0)::int from rewind.verify_perspective($1)`, ""},
	{`select from rewind.certify_perspective($1)`, ""},
	{`select from rewind.pause_perspective($1)`, "55P03"},
	{`select from rewind.resume_perspective($1)`, ""},
	{`select from rewind.resume_perspective($1)`, ""},
	{`select from rewind.resume_perspective($1)`, ""},
	{`select from rewind.prune_history()`, ""},
	{`select from rewind.explain_model($1, 's1')`, "22023"},
	{`select pg_terminate_backend(pid) from pg_stat_activity
	  where datname = current_database() and pid <> pg_backend_pid() and application_name = 'worker' order by random() limit 1`, ""},
}

const everythingFor = 5 * time.Second

// Everything at once: what operators do, in any order, beside writers and workers that are cut off, is done or refused in the way that is
// documented, nothing deadlocks, and in the end every model is the fold of its stream.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	options := map[string]any{
		"inline_rewind_events": 5, "debounce_window": "0s", "rewind_share": 1, "snapshot_every_n_events": 20, "retry_backoff": "10ms",
		"stream_lock_timeout": "1s", "stream_lock_keepalive_interval": "100ms",
	}
	w := newWorld(t, worldOptions{partitions: 4, options: options})
	config := w.pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = "worker"
	pool := openPool(t, config)
	var stops []func() error
	for range 2 {
		k := newWorker(t, &world{t: t, pool: pool}, worker.Config{})
		register(t, k, chainPerspective(options))
		stops = append(stops, start(t, k))
	}
	eventually(t, func() bool { return queryOne[int](t, w.pool, `select count(*) from rewind.workers`) == len(stops) })
	ctx, cancel := context.WithTimeout(t.Context(), everythingFor)
	defer cancel()
	waitForWriters := w.writeOn(t, ctx)
	var operating sync.WaitGroup
	for range 3 {
		operating.Go(func() {
			for ctx.Err() == nil {
				o := operations[rand.IntN(len(operations))]
				var args []any
				if strings.Contains(o.sql, "$1") {
					args = append(args, []string{"p", "g"}[rand.IntN(2)])
				}
				_, err := w.pool.Exec(t.Context(), o.sql, args...)
				var refused *pgconn.PgError
				if errors.As(err, &refused) && slices.Contains(strings.Fields(o.codes), refused.Code) {
					err = nil
				}
				if err != nil {
					t.Errorf("%s %v: %v", o.sql, args, err)
				}
				time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
			}
		})
	}
	operating.Wait()
	waitForWriters()
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	}
	w.exec(`select rewind.resume_perspective('p'), rewind.resume_perspective('g')`)
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(options))
	settle(t, w, k)
	for _, p := range []string{"p", "g"} {
		w.verified(p, 0)
	}
	w.exec(`select from rewind.create_perspective('afterwards', 't', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`call rewind.catch_up('afterwards')`)
	for _, p := range []string{"p", "g"} {
		if diff := cmp.Diff(w.states("afterwards"), w.states(p)); diff != "" {
			t.Errorf("cursors (-built afterwards +%s):\n%s", p, diff)
		}
	}
	wantDense(t, w.pool)
	if n := queryOne[int](t, w.pool, `select deadlocks from pg_stat_database where datname = current_database()`); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// writeOn writes until ctx ends, for which the function that it returns waits.
func (w *world) writeOn(t *testing.T, ctx context.Context) (wait func()) {
	t.Helper()
	var writing sync.WaitGroup
	begin := time.Now()
	for range 2 {
		writing.Go(func() {
			for ctx.Err() == nil {
				if err := w.writeOnce(t, begin); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return writing.Wait
}
