package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rewindpg/rewind/worker"
)

// entries collects what a worker logs.
type entries struct {
	mu   sync.Mutex
	list []entry
}

type entry struct {
	level   slog.Level
	message string
	attrs   map[string]any
}

func (e *entries) logger() *slog.Logger { return slog.New(&collector{entries: e}) }

// withID returns the entries that have a number.
func (e *entries) withID(id int64) (found []entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.list {
		if x.attrs["log_id"] == id {
			found = append(found, x)
		}
	}
	return found
}

// contains tells whether something was logged.
func (e *entries) contains(message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.list, func(x entry) bool { return x.message == message })
}

type collector struct {
	entries *entries
	attrs   []slog.Attr
}

func (*collector) Enabled(context.Context, slog.Level) bool { return true }

func (c *collector) Handle(_ context.Context, r slog.Record) error {
	e := entry{level: r.Level, message: r.Message, attrs: map[string]any{}}
	var add func(slog.Attr) bool
	add = func(a slog.Attr) bool {
		if v := a.Value.Resolve(); v.Kind() == slog.KindGroup && a.Key == "" {
			for _, inner := range v.Group() {
				add(inner)
			}
		} else {
			e.attrs[a.Key] = v.Any()
		}
		return true
	}
	for _, a := range c.attrs {
		add(a)
	}
	r.Attrs(add)
	c.entries.mu.Lock()
	defer c.entries.mu.Unlock()
	c.entries.list = append(c.entries.list, e)
	return nil
}

func (c *collector) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &collector{c.entries, append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)}
}

func (c *collector) WithGroup(string) slog.Handler { return c }

func newWorker(t testing.TB, w *world, config worker.Config) *worker.Worker {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	k, err := worker.New(w.pool, config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// runUntilIdle runs a worker of its own until it is idle.
func runUntilIdle(t testing.TB, w *world, config worker.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience())
	defer cancel()
	if err := newWorker(t, w, config).RunUntilIdle(ctx); err != nil {
		t.Fatal("run until idle:", err)
	}
}

// appendRandomly appends events of few streams, of which one in five is late.
func (w *world) appendRandomly(random *rand.Rand, events int) {
	w.t.Helper()
	for i := range events {
		e := testEvent{at: i, v: random.IntN(1000)}
		if random.IntN(5) == 0 {
			e.at = random.IntN(i + 1)
		}
		w.append(fmt.Sprintf("s%d", random.IntN(5)), e)
	}
}

func TestWorkerRunsUntilIdle(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]map[string]any{
		"rewinds":  {},
		"inline":   {"inline_rewind_events": 256},
		"debounce": {"debounce_window": "200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{partitions: 3, options: options})
			random := rand.New(rand.NewPCG(1, 2))
			for range 3 {
				w.appendRandomly(random, 100)
				runUntilIdle(t, w, worker.Config{BatchSize: 7})
				w.checkSettled()
			}
		})
	}
}

func TestWorkerLogsRewinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", inOrder(40)...)
	runUntilIdle(t, w, worker.Config{})
	w.append("s", testEvent{at: 5, v: 1})
	var log entries
	runUntilIdle(t, w, worker.Config{Logger: log.logger()})
	w.checkSettled()

	required, completed := log.withID(52), log.withID(53)
	if len(required) != 1 || len(completed) != 1 {
		t.Fatalf("entries 52: %v, 53: %v, want one of each", required, completed)
	}
	for _, e := range append(required, completed...) {
		if e.level != slog.LevelWarn || e.attrs["category"] != "PerspectiveWorker" || e.attrs["perspective_name"] != "p" || e.attrs["stream_key"] != "s" {
			t.Errorf("entry %v", e)
		}
	}
	if source := completed[0].attrs["replay_source"]; source != "full" {
		t.Errorf("replay source %v, want full", source)
	}
}

func TestWorkerReportsFailedStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("good", inOrder(5)...)
	w.append("bad", testEvent{at: 1, v: 1}, testEvent{at: 2, v: 2, fail: true}, testEvent{at: 3, v: 3})
	err := newWorker(t, w, worker.Config{}).RunUntilIdle(t.Context())
	var failed *worker.FailedStreamsError
	if !errors.As(err, &failed) || failed.Failed+failed.Parked != 1 {
		t.Fatalf("run until idle: %v, want one failed stream", err)
	}
	w.fix()
	w.exec(`select from rewind.retry_perspective_stream('p', 'bad')`)
	runUntilIdle(t, w, worker.Config{})
}

// A worker that is told to fold what it can't says so instead of folding nothing for ever.
func TestWorkerRefusesPerspectivesItCannotFold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.register_perspective('in go', 't')`)
	for _, name := range []string{"nope", "in go"} {
		if err := newWorker(t, w, worker.Config{Perspectives: []string{"p", name}}).RunUntilIdle(t.Context()); err == nil {
			t.Errorf("a worker for perspective %q ran", name)
		}
	}
}

// The first failure of a fold is logged with its stream, event and error, not only its retries.
func TestWorkerLogsFailingFolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 1, v: 1, fail: true})
	var log entries
	if err := newWorker(t, w, worker.Config{Logger: log.logger()}).RunUntilIdle(t.Context()); err == nil {
		t.Error("a failed stream was no error")
	}
	for _, e := range log.list {
		if e.level == slog.LevelError && e.attrs["stream_key"] == "s" && e.attrs["error"] == "event 1 fails" && e.attrs["event_id"] != nil {
			return
		}
	}
	t.Errorf("no entry names the failure: %+v", log.list)
}
