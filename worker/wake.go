package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	listenStatement = `listen rewind_wake`
	// A worker that would not look for work for so long waits to be woken.
	minWait = 200 * time.Millisecond
)

// listen passes wake-ups on to the loop until ctx ends. It has a connection of its own, since listening is the state of a session; while
// it has none, the worker polls.
func (r *runner) listen(ctx context.Context) {
	for losses := 1; ; losses++ {
		began := time.Now()
		err := r.listenOnce(ctx)
		r.listening.Store(false)
		if ctx.Err() != nil {
			return
		}
		r.log.Debug("listening for wake-ups failed, polling meanwhile", slog.Any("error", err))
		if time.Since(began) > retryDelayMax {
			losses = 1
		}
		if !r.pause(ctx, backoff(losses, retryDelayMin, retryDelayMax)) {
			return
		}
	}
}

func (r *runner) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, listenStatement); err != nil {
		return err
	}
	r.listening.Store(true)
	for { // first for what nobody could tell before
		select {
		case r.wake <- struct{}{}:
		default: // it has been told
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

// awake notes that a worker was woken, or found work by itself.
func (r *runner) awake(ctx context.Context) {
	if r.waiting {
		r.setWaiting(ctx, false)
	}
}

// wait says that this worker is to be woken from now on. It is to look for work once more then, since what was appended before wakes
// nobody.
func (r *runner) wait(ctx context.Context) (waiting bool) {
	if r.waiting || r.delay < minWait || !r.listening.Load() {
		return false
	}
	return r.setWaiting(ctx, true)
}

func (r *runner) setWaiting(ctx context.Context, waiting bool) bool {
	err := r.query.WaitForWake(ctx, r.pool, db.WaitForWakeParams{Worker: r.config.Name, Waiting: waiting})
	if err != nil {
		r.log.Debug("waiting for wake-ups failed, polling", slog.Any("error", err))
		return false
	}
	r.waiting = waiting
	return true
}
