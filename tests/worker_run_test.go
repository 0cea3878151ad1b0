package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/migrate"
	"github.com/rewindpg/rewind/worker"
)

// start runs a worker until the function that it returns is called, which returns what Run returned.
func start(t *testing.T, k *worker.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func TestNewWorker(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	for name, config := range map[string]worker.Config{
		"batch_size":     {BatchSize: -1},
		"concurrency":    {Concurrency: -1},
		"too_few_conns":  {Concurrency: 1000},
		"poll_interval":  {PollInterval: -1},
		"poll_intervals": {PollInterval: time.Second, MaxPollInterval: time.Millisecond},
	} {
		if _, err := worker.New(pool, config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	k, err := worker.New(pool, worker.Config{})
	if err != nil || k.Name() == "" {
		t.Errorf("zero config: %v", err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	k := newWorker(t, w, worker.Config{})
	stop := start(t, k)
	listed := func() bool {
		return queryOne[bool](t, w.pool, `select exists (select from rewind.workers where worker_id = $1)`, k.Name())
	}
	eventually(t, listed)
	if err := k.Run(t.Context()); err == nil {
		t.Error("a worker runs twice at a time")
	}
	w.append("s", inOrder(3)...)
	eventually(t, func() bool { return w.applied("p") == 3 })
	began := time.Now()
	if err := stop(); err != nil {
		t.Errorf("run that was stopped: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if listed() {
		t.Error("a worker that has stopped is still listed")
	}
	stop = start(t, k) // it may run again
	w.append("s", testEvent{at: 100, v: 1})
	eventually(t, func() bool { return w.applied("p") == 4 })
	if err := stop(); err != nil {
		t.Errorf("second run: %v", err)
	}
}

func TestRunRefusesSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		want   error
	}{
		"missing": {`truncate rewind.schema_bundle`, migrate.ErrSchemaMissing},
		"older":   {`update rewind.schema_bundle set checksum = 'x'`, migrate.ErrSchemaOlder},
		"newer":   {`update rewind.schema_bundle set version = version + 1`, migrate.ErrSchemaNewer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			w.exec(c.change)
			if err := newWorker(t, w, worker.Config{}).Run(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("run: %v, want %v", err, c.want)
			}
		})
	}
	t.Run("changed_under_it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, worldOptions{})
		done := make(chan error, 1)
		k := newWorker(t, w, worker.Config{})
		go func() { done <- k.Run(t.Context()) }()
		eventually(t, func() bool { return queryOne[int64](t, w.pool, `select count(*) from rewind.workers`) == 1 })
		w.exec(`update rewind.schema_bundle set version = version + 1`)
		w.exec(`drop function rewind._find_work(text[], jsonb)`)
		if err := <-done; !errors.Is(err, migrate.ErrSchemaNewer) {
			t.Errorf("run: %v, want %v", err, migrate.ErrSchemaNewer)
		}
	})
}

// flakySQL makes every write of a position or a cursor fail now and then in a way that the worker must try again: only the first
// attempts, told apart by a sequence, which no rollback takes back.
const flakySQL = `
create sequence app.attempts;
create function app.fail_now_and_then() returns trigger language plpgsql as $$
begin
  case nextval('app.attempts') % 10
    when 1 then raise 'flaky' using errcode = '40001';
    when 4 then raise 'flaky' using errcode = '40P01';
    when 7 then perform pg_terminate_backend(pg_backend_pid());
    else null;
  end case;
  return null;
end $$;
create trigger flaky after update on rewind.perspective_partitions for each statement execute function app.fail_now_and_then();
create trigger flaky after delete on rewind.perspective_stream_locks for each statement execute function app.fail_now_and_then()`

// What fails halfway for a passing reason is done again, and everything counts once.
func TestPassingErrors(t *testing.T) {
	t.Parallel()
	options := map[string]any{"inline_rewind_events": 5, "debounce_window": "0s", "rewind_share": 1, "stream_lock_timeout": "1s", "stream_lock_keepalive_interval": "300ms"}
	w := newWorld(t, worldOptions{partitions: 2, options: options})
	w.exec(flakySQL)
	k := newWorker(t, w, worker.Config{BatchSize: 10})
	register(t, k, chainPerspective(options))
	w.appendRandomly(rand.New(rand.NewPCG(3, 4)), 200)
	settle(t, w, k)
	w.checkSettled()
	if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
		t.Errorf("cursors (-SQL +Go):\n%s", diff)
	}
	if n := queryOne[int64](t, w.pool, `select last_value from app.attempts`); n < 20 {
		t.Errorf("only %d writes could fail", n)
	}
}

// A crash and restart of the server doesn't end a run.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	if _, err := migrateUp(t.Context(), server.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	w := newWorldIn(t, testdb.Open(t, server.URL("postgres")), worldOptions{})
	stop := start(t, newWorker(t, w, worker.Config{}))
	w.append("s", inOrder(3)...)
	eventually(t, func() bool { return w.applied("p") == 3 })

	witness, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close(t.Context())
	pid := queryOne[int](t, w.pool, `select pg_backend_pid()`)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // the server kills all others and starts anew
		t.Fatal(err)
	}
	eventually(t, func() bool { return witness.Ping(t.Context()) != nil })
	w.pool.Reset()
	event := []map[string]any{{"event_id": at(50), "type": "x", "payload": map[string]any{"v": 1}}}
	eventually(t, func() bool {
		_, err := w.pool.Exec(t.Context(), `select from rewind.append_events('t', 's', $1)`, event)
		return err == nil
	})
	eventually(t, func() bool { return w.applied("p") == 4 })
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	w.checkSettled()
}

// statementCounter counts what a pool sends.
type statementCounter struct{ count atomic.Int64 }

func (c *statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.count.Add(1)
	return ctx
}

func (c *statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *statementCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	c.count.Add(int64(data.Batch.Len()))
	return ctx
}

func (c *statementCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *statementCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func TestIdleWorkerIsQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	config := w.pool.Config()
	var counter statementCounter
	config.ConnConfig.Tracer = &counter
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stop := start(t, newWorker(t, &world{t: t, pool: pool}, worker.Config{}))
	w.append("s", inOrder(3)...)
	eventually(t, func() bool { return w.applied("p") == 3 })

	// It slows down until a statement comes only every other second or so.
	last, seen := time.Now(), counter.count.Load()
	eventually(t, func() bool {
		if n := counter.count.Load(); n != seen {
			last, seen = time.Now(), n
		}
		return time.Since(last) > 1500*time.Millisecond
	})
	const statements = 6
	began := time.Now()
	eventually(t, func() bool { return counter.count.Load() >= seen+statements })
	if perMinute := statements / time.Since(began).Minutes(); perMinute >= 60 {
		t.Errorf("%.0f statements a minute, want less than 60", perMinute)
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
}

// Workers share what there is to do, and get it done together.
func TestWorkersShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 8})
	w.exec(`create table app.backends (pid int primary key)`)
	w.exec(`create function app.note() returns trigger language plpgsql as $$
		begin insert into app.backends values (pg_backend_pid()) on conflict do nothing; return null; end $$`)
	w.exec(`create trigger note after update on rewind.perspective_partitions for each statement execute function app.note()`)
	w.appendRandomly(rand.New(rand.NewPCG(5, 6)), 400)
	var logs [3]entries
	var stops []func() error
	for i := range logs {
		stops = append(stops, start(t, newWorker(t, w, worker.Config{BatchSize: 5, Logger: logs[i].logger()})))
	}
	eventually(t, func() bool {
		return queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_generations g, rewind._unread_partitions(g.generation_id)`) == 0 &&
			queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2`) == 0
	})
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	}
	w.checkSettled()
	required := 0
	for i := range logs {
		if n := len(logs[i].withID(43)); n > 0 {
			t.Errorf("worker %d complains %d times of locks that workers hold", i, n)
		}
		required += len(logs[i].withID(52))
	}
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_rewinds`); n != required || n == 0 {
		t.Errorf("%d rewinds, of which workers announced %d", n, required)
	}
}

// A stream whose lock somebody else holds is put off, which is no failure.
func TestDeferredRewind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", inOrder(5)...)
	runUntilIdle(t, w, worker.Config{})
	token := queryOne[int64](t, w.pool, `
		select rewind.claim_perspective_stream_lock(active_generation, rewind.stream_id('t', 's'), 'somebody', 'maintenance') from rewind.perspectives`)
	w.append("s", testEvent{at: 2, v: 3})
	var log entries
	stop := start(t, newWorker(t, w, worker.Config{Logger: log.logger()}))
	eventually(t, func() bool { return len(log.withID(43)) > 0 })
	if c := w.cursor("s"); c.Status != 32 || c.Attempts != 0 {
		t.Errorf("deferred cursor: %+v", c)
	}
	w.exec(`select rewind.release_perspective_stream_lock(active_generation, rewind.stream_id('t', 's'), $1) from rewind.perspectives`, token)
	eventually(t, func() bool { return len(log.withID(53)) > 0 })
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	w.checkSettled()
	if n := len(log.withID(43)); n != 1 {
		t.Errorf("the deferral is logged %d times, want once", n)
	}
}

// A worker whose batches are all busy has nothing to look for but repairs, however often it may poll.
func TestBusyWorkerPollsLess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as
		$$ begin perform pg_sleep(3); return '{}'; end $$`)
	w.append("s", testEvent{at: 10, v: 1})
	config := w.pool.Config()
	var counter statementCounter
	config.ConnConfig.Tracer = &counter
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stop := start(t, newWorker(t, &world{t, pool}, worker.Config{Concurrency: 1, PollInterval: time.Millisecond, MaxPollInterval: time.Millisecond}))
	eventually(t, func() bool {
		return queryOne[bool](t, w.pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	})
	before := counter.count.Load()
	time.Sleep(time.Second)
	if n := counter.count.Load() - before; n > 40 { // one in 50 ms, and some of its own
		t.Errorf("%d statements in a second", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
