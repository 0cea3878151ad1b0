package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	retryDelayMin = 50 * time.Millisecond
	retryDelayMax = 5 * time.Second
	// maxAttempts bounds how often a statement is tried, since its fold may be the reason that it fails.
	maxAttempts = 5
	// maxLosses bounds how often a statement may end its connection.
	maxLosses = 2
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
	return errors.As(err, &netError) || isUnreachable(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

// isUnreachable tells whether a connection could not be made, so that nothing was tried.
func isUnreachable(err error) bool {
	var connectError *pgconn.ConnectError
	return errors.As(err, &connectError)
}

// isOfItsFold tells whether a statement that runs folds may have failed by one of them: it ended the connection, or used up time or memory.
func isOfItsFold(err error) bool {
	code := sqlState(err)
	return isConnectionLoss(err) && !isUnreachable(err) || code == "57014" || code == "53200" ||
		strings.HasPrefix(code, "XX") || strings.HasPrefix(code, "58")
}

// mayBeOfItsFold tells whether a statement that keeps failing may do so by its fold, which can raise any error there is.
func mayBeOfItsFold(err error) bool {
	return sqlState(err) != "" && !isUnreachable(err) && !isOutOfReach(err)
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
	attempts, losses := 0, 0
	for tries := 1; ; tries++ {
		result, err := do()
		switch {
		case !isTransient(err):
			return result, err
		case isUnreachable(err):
		case isConnectionLoss(err):
			losses++
		default:
			attempts++
		}
		if attempts == maxAttempts || losses == maxLosses {
			return result, err
		}
		r.log.Debug("statement failed, trying again", slog.Any("error", err), slog.Int("attempt", tries))
		if !r.pause(ctx, backoff(tries, retryDelayMin, retryDelayMax)) {
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
