package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	retryDelayMin = 50 * time.Millisecond
	retryDelayMax = 5 * time.Second
	// maxAttempts bounds what a statement is tried again for while the database can be reached: a fold that always conflicts, or kills
	// its backend, must not be tried for ever.
	maxAttempts = 5
)

// sqlState returns the code of a server's error, "" for any other.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isConflict tells whether the server ended a transaction because of others: it can simply be tried again.
func isConflict(err error) bool {
	return slices.Contains([]string{"40001", "40P01"}, sqlState(err))
}

// isConnectionLoss tells whether the connection is gone or could not be made. What a commit under way did is not known then.
func isConnectionLoss(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if code := sqlState(err); code != "" {
		// Shut down, crashed, starting, idle for too long; no connection left.
		return code[:2] == "08" || slices.Contains([]string{"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300"}, code)
	}
	var netError net.Error
	var connectError *pgconn.ConnectError
	return errors.As(err, &netError) || errors.As(err, &connectError) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

func isTransient(err error) bool { return isConflict(err) || isConnectionLoss(err) }

// backoff is the pause before attempt n+1 after n failed ones: doubling, with jitter.
func backoff(n int, least, most time.Duration) time.Duration {
	d := most
	if shift := n - 1; shift < 30 && least<<shift < most {
		d = least << shift
	}
	return jitter(d)
}

// jitter spreads what many workers do at a time by a fifth up or down.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// retry does a statement again that failed for a passing reason, until the worker is to stop. While the database can't be reached no
// attempt counts.
func retry[T any](ctx context.Context, r *runner, do func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		result, err := do()
		if !isTransient(err) || attempt == maxAttempts {
			return result, err
		}
		r.log.Debug("statement failed, trying again", slog.Any("error", err), slog.Int("attempt", attempt))
		wait := backoff(attempt, retryDelayMin, retryDelayMax)
		if _, unreached := errors.AsType[*pgconn.ConnectError](err); unreached {
			attempt--
		}
		if !r.pause(ctx, wait) {
			return result, errStopped
		}
	}
}

// pause waits, or returns false when ctx ends or the worker is to stop.
func (r *runner) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.stopping:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
