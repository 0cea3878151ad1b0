package bench

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

const workerConns = 6

// newWorker returns a worker for perspectives, with a pool of its own that is to be closed.
func (e *env) newWorker(
	ctx context.Context, perspectives []string, config worker.Config, change func(*pgxpool.Config),
) (*worker.Worker, *pgxpool.Pool, error) {
	poolConfig, err := e.server.config(e.name)
	if err != nil {
		return nil, nil, err
	}
	poolConfig.MaxConns = workerConns
	if change != nil {
		change(poolConfig)
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, nil, err
	}
	config.Logger = slog.New(slog.DiscardHandler)
	config.Perspectives = perspectives
	w, err := worker.New(pool, config)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return w, pool, nil
}

// startWorker runs a worker with defaults for a perspective in SQL, until stop is called, which returns how that went.
func (e *env) startWorker(ctx context.Context, perspective string) (stop func() error, err error) {
	w, pool, err := e.newWorker(ctx, []string{perspective}, worker.Config{}, nil)
	if err != nil {
		return nil, err
	}
	return runWorker(ctx, w, pool), nil
}

func runWorker(ctx context.Context, w *worker.Worker, pool *pgxpool.Pool) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		err := <-ended
		pool.Close()
		return err
	}
}

// runToEnd lets a worker of one batch at a time fold all there is, and returns how long that took.
func (e *env) runToEnd(ctx context.Context, perspective string, inGo bool, tree string) (time.Duration, error) {
	w, pool, err := e.newWorker(ctx, []string{perspective}, worker.Config{
		Concurrency: 1, PollInterval: time.Millisecond, MaxPollInterval: time.Millisecond,
	}, nil)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if inGo {
		if err := worker.Register(w, sumUp(perspective, tree)); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err = w.RunUntilIdle(ctx)
	return time.Since(begin), err
}

// sum is the model of bench.sum_up.
type sum struct {
	Events int    `json:"events"`
	Amount int    `json:"amount"`
	State  string `json:"state"`
}

// sumUp is bench.sum_up in Go.
func sumUp(name, tree string) worker.Perspective[sum] {
	return worker.Perspective[sum]{
		Name: name, Tree: tree,
		Apply: func(model sum, event rewind.Event) (sum, error) {
			var payload struct{ Amount int }
			if err := json.Unmarshal(event.Payload, &payload); err != nil {
				return model, err
			}
			return sum{Events: model.Events + 1, Amount: model.Amount + payload.Amount, State: event.Type}, nil
		},
	}
}
