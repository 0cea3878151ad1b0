package tests

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/rewindpg/rewind/worker"
)

// maxAppendTime is far below the time for which a stopped worker's locks are held.
const maxAppendTime = 500 * time.Millisecond

func stopWorld(t *testing.T, options map[string]any) *world {
	t.Helper()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.drop_perspective('p')`)
	all := map[string]any{
		"stream_lock_timeout": "2s", "stream_lock_keepalive_interval": "500ms", "inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1,
	}
	for k, v := range options {
		all[k] = v
	}
	w.exec(`select from rewind.register_perspective('g', 't', p_options => $1)`, all)
	return w
}

// runBeside runs a worker that folds perspective g until the function that it returns is called.
func runBeside(t *testing.T, w *world, log *entries) (stop func()) {
	t.Helper()
	k := newWorker(t, w, worker.Config{Logger: log.logger()})
	register(t, k, chainPerspective(nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error("run:", err)
		}
	}
}

// appendInTime appends events, in order and late ones, each of which must not wait for the stopped worker.
func (w *world) appendInTime(t *testing.T, from, n int) {
	t.Helper()
	for i := range n {
		at := from + i
		if i%2 == 0 {
			at = i
		}
		began := time.Now()
		w.append("s", testEvent{at: at, v: 1 + i%5})
		if took := time.Since(began); took > maxAppendTime {
			t.Errorf("an append took %v while a worker was stopped", took)
		}
	}
}

func (w *world) applied(perspective string) (version int64) {
	for _, s := range w.states(perspective) {
		version = max(version, s.AppliedVersion)
	}
	return version
}

// A worker that is stopped in the middle of a batch holds up no append; another takes over, and of the first nothing is written.
func TestWorkerStoppedInBatch(t *testing.T) {
	t.Parallel()
	w := stopWorld(t, nil)
	first := startGoWorker(t, w)
	first.waitFor(t, "worker started")
	w.append("s", append(inOrder(10), testEvent{at: 1000, v: blockingValue})...)
	eventually(t, func() bool {
		return queryOne[int64](t, w.pool, `select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`) == 1
	})
	first.signal(t, syscall.SIGSTOP)
	w.appendInTime(t, 2000, 10)

	var log entries
	stop := runBeside(t, w, &log)
	eventually(t, func() bool { w.appendInTime(t, 3000, 2); return w.applied("g") > 11 })
	first.signal(t, syscall.SIGCONT)
	if err := first.input.Close(); err != nil {
		t.Fatal(err)
	}
	first.waitFor(t, "batch failed")
	first.signal(t, syscall.SIGTERM)
	<-first.exited
	stop()

	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	settle(t, w, k)
	w.checkGo(t)
}

// A worker that is stopped in the middle of building a generation holds that up no longer than its locks last.
func TestWorkerStoppedInBuild(t *testing.T) {
	t.Parallel()
	w := stopWorld(t, nil)
	w.append("s", append(inOrder(10), testEvent{at: 1000, v: blockingValue})...)
	w.exec(`select from rewind.begin_perspective_rebuild('g', 'in-place')`)
	first := startGoWorker(t, w)
	eventually(t, func() bool {
		return queryOne[int64](t, w.pool, `select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`) == 1
	})
	first.signal(t, syscall.SIGSTOP)
	w.appendInTime(t, 2000, 10)

	var log entries
	stop := runBeside(t, w, &log)
	w.waitForRebuild("g")
	first.signal(t, syscall.SIGCONT)
	if err := first.input.Close(); err != nil {
		t.Fatal(err)
	}
	first.waitFor(t, "batch failed")
	first.signal(t, syscall.SIGTERM)
	<-first.exited
	stop()
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	settle(t, w, k)
	w.checkGo(t)
}

// A worker that is stopped in the middle of a rewind loses its stream lock to another one.
func TestWorkerStoppedInRewind(t *testing.T) {
	t.Parallel()
	w := stopWorld(t, nil)
	first := startGoWorker(t, w)
	w.append("s", inOrder(10)...)
	eventually(t, func() bool { return w.applied("g") == 10 })
	w.append("s", testEvent{at: 5, v: blockingValue})
	first.waitFor(t, "replaying in full")
	first.signal(t, syscall.SIGSTOP)
	w.appendInTime(t, 2000, 10)

	var log entries
	stop := runBeside(t, w, &log)
	eventually(t, func() bool { return len(log.withID(53)) > 0 })
	first.signal(t, syscall.SIGCONT)
	if err := first.input.Close(); err != nil {
		t.Fatal(err)
	}
	first.waitFor(t, "stream lock lost")
	first.signal(t, syscall.SIGTERM)
	<-first.exited
	stop()
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	settle(t, w, k)
	w.checkGo(t)
}

// checkGo expects what a SQL perspective with the same fold makes of the same log.
func (w *world) checkGo(t *testing.T) {
	t.Helper()
	w.exec(`select from rewind.create_perspective('p', 't', 'app.chain(jsonb, rewind.event)')`)
	w.catchUp()
	w.checkSettled()
	for i, want := range w.states("p") {
		if got := w.states("g")[i]; got.AppliedVersion != want.AppliedVersion || got.EventsApplied != want.EventsApplied || jsonOf(t, got.Model) != jsonOf(t, want.Model) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
