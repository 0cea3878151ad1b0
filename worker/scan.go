package worker

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/rewindpg/rewind/internal/db"
)

// startupScan holds back live batches until what was flagged when the worker started is repaired, without waiting for debounce.
type startupScan struct {
	until        *time.Time // by the database's clock; what was flagged later is not its concern
	streams      int64
	perspectives int64
	started      time.Time
	failed       []string // their retries are waited for, in their own time
}

// copy is for a goroutine beside the loop; that of nil is nil.
func (s *startupScan) copy() *startupScan {
	if s == nil {
		return nil
	}
	c := *s
	c.failed = slices.Clone(s.failed)
	return &c
}

// scanAtStart looks for flagged streams. If the worker is to repair them first, it is not ready until pollScan finds that done.
func (r *runner) scanAtStart(ctx context.Context) {
	scan := r.findFlagged(ctx)
	if scan != nil && r.options.Load().StartupRewindMode == startupBlocking {
		r.scan = scan
		return
	}
	r.ready.Store(true)
}

// findFlagged returns nil if there is nothing to wait for.
func (r *runner) findFlagged(ctx context.Context) *startupScan {
	if !r.options.Load().StartupScanEnabled || r.rebuilding {
		return nil
	}
	found, err := r.scanFlagged(ctx, nil)
	switch {
	case err != nil:
		r.scanLog.Warn("startup scan failed", logID(logScanFailed), slog.Any("error", err))
		return nil
	case found.Streams == 0:
		r.scanLog.Info("no stream is flagged", logID(logNothingFlagged))
		return nil
	}
	r.scanLog.Info("startup scan started", logID(logScanStarted), slog.Int64("stream_count", found.Streams),
		slog.Int64("perspective_count", found.Perspectives))
	return &startupScan{
		until: found.ScannedAt, streams: found.Streams, perspectives: found.Perspectives, started: time.Now(), failed: []string{},
	}
}

func (r *runner) scanFlagged(ctx context.Context, until *time.Time) (db.RewindFlaggedScan, error) {
	return r.query.ScanFlagged(ctx, r.pool, db.ScanFlaggedParams{
		Perspectives: r.config.Perspectives, GoPerspectives: r.versions, Until: until,
	})
}

// pollScan asks for the rewinds that are left, and ends the scan when there are none. While some are under way nothing is counted.
func (r *runner) pollScan(ctx context.Context) {
	if r.claiming || r.rewinds > 0 {
		r.due = true
		r.schedule(jitter(r.delay))
		return
	}
	found, err := r.scanFlagged(ctx, r.scan.until)
	if err != nil {
		r.pollFailed(ctx, err)
		return
	}
	r.failures = 0
	if found.Streams > found.LeftAlone {
		r.due = true
		r.schedule(jitter(r.delay))
		return
	}
	r.scanLog.Info("startup scan completed", logID(logScanCompleted), slog.Int64("stream_count", r.scan.streams),
		slog.Int64("perspective_count", r.scan.perspectives), slog.Int64("duration_ms", time.Since(r.scan.started).Milliseconds()),
		slog.Int64("left_count", found.LeftAlone))
	r.scan = nil
	r.ready.Store(true)
	r.schedule(0)
}
