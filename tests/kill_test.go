package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind/worker"
)

const (
	killWorkers = 3
	kills       = 6
)

// Workers that are killed at any moment lose nothing and do nothing twice.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rewindworker")
	run(t, "go", "build", "-o", program, "../cmd/rewindworker")
	for name, start := range map[string]func(*testing.T, *world) *process{
		"sql": func(t *testing.T, w *world) *process {
			return startProcess(t, exec.Command(program, "run", "--database-url", w.pool.Config().ConnString()))
		},
		"go": startGoWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := map[string]any{
				"inline_rewind_events": 5, "debounce_window": "100ms", "rewind_share": 1, "snapshot_every_n_events": 20,
				"stream_lock_timeout": "1s", "stream_lock_keepalive_interval": "300ms",
			}
			w := newWorld(t, worldOptions{partitions: 4, options: options})
			w.exec(`select from rewind.register_perspective('g', 't', p_options => $1)`, options)
			var processes [killWorkers]*process
			for i := range processes {
				processes[i] = start(t, w)
			}
			stopWriting := w.write(t, 4)
			for range kills {
				w.waitForRewinds(t, 3)
				i := rand.IntN(killWorkers)
				processes[i].signal(t, syscall.SIGKILL)
				<-processes[i].exited
				processes[i] = start(t, w)
			}
			stopWriting()
			for _, p := range processes {
				p.waitFor(t, "worker started")
				p.signal(t, syscall.SIGTERM)
				<-p.exited
				if code := p.ProcessState.ExitCode(); code != 0 {
					t.Errorf("a worker that was asked to stop exits with %d", code)
				}
			}
			k := newWorker(t, w, worker.Config{})
			register(t, k, chainPerspective(nil))
			settle(t, w, k)
			w.checkSettled()
			if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
				t.Errorf("cursors (-SQL +Go):\n%s", diff)
			}
			if n := queryOne[int64](t, w.pool, `select count(*) from rewind.workers where worker_id <> $1`, k.Name()); n > kills {
				t.Errorf("%d workers are listed, at most the %d that were killed should be", n, kills)
			}
		})
	}
}

// write appends from several sessions, 20 % late, 20 % rolled back, until the function that it returns is called.
func (w *world) write(t *testing.T, writers int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	begin := time.Now()
	for range writers {
		writing.Go(func() {
			for ctx.Err() == nil {
				if err := w.writeOnce(t, begin); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		writing.Wait()
	}
}

func (w *world) writeOnce(t *testing.T, begin time.Time) error {
	ctx := t.Context()
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) // does nothing after a commit
	events := make([]testEvent, 1+rand.IntN(5))
	for i := range events {
		events[i] = testEvent{at: int(time.Since(begin).Milliseconds()), v: rand.IntN(blockingValue)}
		if rand.IntN(5) == 0 {
			events[i].at -= rand.IntN(1000)
		}
	}
	appendEvents(t, tx, fmt.Sprint("s", rand.IntN(40)), events...)
	if rand.IntN(5) == 0 {
		return tx.Rollback(ctx)
	}
	return tx.Commit(ctx)
}

// waitForRewinds waits until n more streams were rewound.
func (w *world) waitForRewinds(t *testing.T, n int64) {
	t.Helper()
	count := func() int64 { return queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds`) }
	before := count()
	eventually(t, func() bool { return count() >= before+n })
}
