// Package worker keeps perspectives up to date: it applies new events to their models and rewinds the models for which events came late.
//
// Perspectives that fold in SQL are found in the database, and every worker folds them. Those that fold in Go are registered with
// [Register]; a worker leaves alone what it doesn't know. Any number of workers, in any number of processes, share the work.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	defaultBatchSize       = 5000
	defaultConcurrency     = 4
	defaultPollInterval    = 10 * time.Millisecond
	defaultMaxPollInterval = 2500 * time.Millisecond
	// reservedConns are for what must not wait for a batch: polling, heartbeat and keepalive.
	reservedConns = 2
	modulePath    = "github.com/rewindpg/rewind"
)

// Config of a worker. The zero value is a good one.
type Config struct {
	// Name tells this worker from others, in rewind.workers, locks and history. Default: host, process id and something random.
	Name string
	// Logger gets what happens. Default: slog.Default(). The option log_level says from which level on, by category.
	Logger *slog.Logger
	// Perspectives to fold. Default: all that this worker can.
	Perspectives []string
	// BatchSize bounds the records of a batch. Default: 5000.
	BatchSize int
	// Concurrency is how many batches are applied at once. Each takes a connection, and the pool must have two more. Default: 4, or what
	// the pool has connections for.
	Concurrency int
	// PollInterval is how long after work the worker looks for more; without any it looks less and less often, down to every
	// MaxPollInterval. Default: 10 ms and 2.5 s.
	PollInterval    time.Duration
	MaxPollInterval time.Duration
	// NoListening leaves wake-ups alone, which take a connection beside the pool, and work through no pooler in transaction mode.
	NoListening bool
	// MeterProvider and TracerProvider of OpenTelemetry. Default: the global ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// Worker applies batches and rewinds. Make one with [New].
type Worker struct {
	config   Config
	pool     *pgxpool.Pool
	query    db.Queries
	wake     chan struct{}
	ready    atomic.Bool
	lastPoll atomic.Pointer[time.Time]

	log            category
	perspectiveLog category
	scanLog        category
	telemetry      *telemetry

	mu           sync.Mutex
	perspectives map[string]goPerspective
	running      bool
	rebuilding   bool // and nothing else
}

// New returns a worker that uses the pool, which stays the caller's.
func New(pool *pgxpool.Pool, config Config) (*Worker, error) {
	maxConns := int(pool.Config().MaxConns)
	if config.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name the worker: %w", err)
		}
		config.Name = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.MeterProvider == nil {
		config.MeterProvider = otel.GetMeterProvider()
	}
	if config.TracerProvider == nil {
		config.TracerProvider = otel.GetTracerProvider()
	}
	if config.BatchSize == 0 {
		config.BatchSize = defaultBatchSize
	}
	if config.Concurrency == 0 {
		config.Concurrency = max(1, min(defaultConcurrency, maxConns-reservedConns))
	}
	if config.PollInterval == 0 {
		config.PollInterval = defaultPollInterval
	}
	if config.MaxPollInterval == 0 {
		config.MaxPollInterval = max(defaultMaxPollInterval, config.PollInterval)
	}
	switch {
	case config.BatchSize < 1 || config.BatchSize > 1_000_000:
		return nil, fmt.Errorf("batch size %d is not from 1 to 1000000", config.BatchSize)
	case config.Concurrency < 1:
		return nil, fmt.Errorf("concurrency %d is not positive", config.Concurrency)
	case config.Concurrency+reservedConns > max(maxConns, 1+reservedConns):
		return nil, fmt.Errorf("%d batches at once need a pool of %d connections, not %d", config.Concurrency, config.Concurrency+reservedConns, maxConns)
	case config.PollInterval < 0 || config.MaxPollInterval < config.PollInterval:
		return nil, fmt.Errorf("poll intervals from %v to %v make no sense", config.PollInterval, config.MaxPollInterval)
	}
	instruments, err := newTelemetry(config.MeterProvider, config.TracerProvider)
	if err != nil {
		return nil, err
	}
	return &Worker{
		config:         config,
		pool:           pool,
		wake:           make(chan struct{}, 1),
		log:            newCategory(config.Logger, categoryWorker),
		perspectiveLog: newCategory(config.Logger, categoryPerspective),
		scanLog:        newCategory(config.Logger, categoryStartupScan),
		telemetry:      instruments,
		perspectives:   map[string]goPerspective{},
	}, nil
}

// Name of the worker.
func (w *Worker) Name() string { return w.config.Name }

// Ready tells whether the worker runs and has done what it does first: with the option startup_rewind_mode at blocking, the rewinds that it
// found waiting.
func (w *Worker) Ready() bool { return w.ready.Load() }

// LastPoll is when the worker last looked for work, found or not, whether or not the database answered; zero if it never did.
func (w *Worker) LastPoll() time.Time {
	if last := w.lastPoll.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// Run works until ctx ends, and then returns nil: batches under way are finished, rewinds are left to others. Errors of the database are
// waited out. It returns an error if the schema doesn't fit this program, or if a perspective can't be registered.
func (w *Worker) Run(ctx context.Context) error { return w.run(ctx, false) }

// RunUntilIdle works until nothing is left to read, to rewind or to catch up, waiting for debounce and budgets. Perspectives that are
// paused, or that this worker doesn't know, and rewinds that are disabled are not waited for, nor are failed streams: if there are any
// then, the error is a [FailedStreamsError]. Errors of the database that last end it too.
func (w *Worker) RunUntilIdle(ctx context.Context) error { return w.run(ctx, true) }

// FailedStreamsError says that streams failed; rewind.perspective_cursors says which and why.
type FailedStreamsError struct {
	Failed int64 // of them will be tried again
	Parked int64 // have no attempt left
}

func (e *FailedStreamsError) Error() string {
	return fmt.Sprintf("failed streams: %d, parked ones among them: %d", e.Failed+e.Parked, e.Parked)
}

func (w *Worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return errors.New("the worker is running already")
	}
	w.running = true
	return nil
}

func (w *Worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

// moduleVersion is the version of this module in the running program.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, dep := range info.Deps {
		if dep.Path == modulePath {
			return dep.Version
		}
	}
	if info.Main.Path == modulePath && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
