package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

// The test program, started again with this variable, is a worker that folds perspective g in Go.
const workerURLVariable = "REWIND_TEST_WORKER_URL"

// exitingValue makes the fold of such a process end it.
const exitingValue = 88_888

// blockingValue makes the fold of such a process wait until its standard input ends.
const blockingValue = 77_777

func runWorkerProcess(url string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := func() error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		k, err := worker.New(pool, worker.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err != nil {
			return err
		}
		input := bufio.NewReader(os.Stdin)
		p := chainPerspective(nil)
		p.Apply = func(model chainModel, event rewind.Event) (chainModel, error) {
			var payload struct{ V int }
			if err := json.Unmarshal(event.Payload, &payload); err == nil && payload.V == exitingValue {
				os.Exit(3)
			} else if err == nil && payload.V == blockingValue {
				if _, err := io.Copy(io.Discard, input); err != nil {
					return model, err
				}
			}
			return applyChain(model, event)
		}
		if err := worker.Register(k, p); err != nil {
			return err
		}
		return k.Run(ctx)
	}()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(os.Stderr, "memory: %d bytes\n", memory.Sys) // the most that there was: none of it is ever given up
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a worker in a process of its own.
type process struct {
	*exec.Cmd
	input  io.Closer
	output output
	exited chan struct{}
}

// output is what a process prints, for readers beside it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) contains(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Contains(o.buf.Bytes(), []byte(text))
}

// startProcess starts a command that ends with the test, at the latest.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, exited: make(chan struct{})}
	cmd.Stderr = &p.output
	var err error
	if p.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if it has ended
		<-p.exited
		if t.Failed() {
			t.Logf("output of process %d:\n%s", cmd.Process.Pid, p.output.buf.String())
		}
	})
	return p
}

// startGoWorker starts a process that folds perspective g.
func startGoWorker(t *testing.T, w *world) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerURLVariable+"="+w.pool.Config().ConnString())
	return startProcess(t, cmd)
}

// waitFor waits until the process has printed something.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return p.output.contains(text) })
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatalf("%v to process %d: %v", s, p.Process.Pid, err)
	}
}
