package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/db"
)

// releaseTimeout bounds giving a lock back; it expires otherwise.
const releaseTimeout = 5 * time.Second

var (
	errStopped  = errors.New("the worker is stopping")
	errLockLost = errors.New("the stream lock is lost")
)

// claimRewinds takes the stream locks of up to limit due rewinds; at a startup scan first of flagged streams that are not due yet.
func (r *runner) claimRewinds(ctx context.Context, limit int, scan *startupScan) (claimed []db.RewindClaimedRewind, err error) {
	if scan != nil {
		claimed, err = r.query.ClaimFlagged(ctx, inTransaction(r.pool), db.ClaimFlaggedParams{
			Worker: r.config.Name, RewindLimit: int32(limit), Perspectives: r.config.Perspectives, GoPerspectives: r.versions,
			ExceptStreamIds: scan.failed,
		})
		if limit -= len(claimed); limit == 0 || err != nil {
			return claimed, err
		}
	}
	due, err := r.query.ClaimPerspectiveRewinds(ctx, inTransaction(r.pool), db.ClaimPerspectiveRewindsParams{
		Worker: r.config.Name, RewindLimit: int32(limit), Perspectives: r.config.Perspectives, GoPerspectives: r.versions,
	})
	return append(claimed, due...), err
}

// outcome of a repair.
type outcome int

const (
	repaired outcome = iota
	failed           // and recorded
	givenUp          // nothing is left behind
)

// rewind repairs a claimed stream. A failure is recorded and is that stream's alone.
func (r *runner) rewind(ctx context.Context, claimed db.RewindClaimedRewind) outcome {
	p := &repair{
		runner: r, claimed: claimed, streamID: *claimed.StreamID, started: time.Now(), span: noSpan,
		log: r.perspectiveLog.With(streamAttrs(claimed.PerspectiveName, *claimed.StreamID, claimed.StreamKey)),
	}
	err := p.run(ctx)
	switch {
	case err == nil && p.failed == nil:
		return repaired
	case err == nil:
		return failed
	case errors.Is(err, errLockLost):
		p.log.Warn("stream lock lost, leaving the repair to its new holder")
		return givenUp
	case errors.Is(err, errStopped), errors.Is(err, pgx.ErrNoRows), ctx.Err() != nil, isOutOfReach(err):
		p.log.Debug("repair given up", slog.Any("reason", err))
	case p.recordFailure(ctx, err):
		return failed
	}
	p.releaseLock(ctx)
	return givenUp
}

// repair of one stream: an unlocked replay, and a completion that writes its result.
type repair struct {
	*runner
	claimed  db.RewindClaimedRewind
	streamID uuid.UUID
	tenantID string
	log      *slog.Logger
	started  time.Time
	options  perspectiveOptions
	flagged  bool // it is a rewind; else a retry, or catching up
	suspect  bool // it has ended workers, as it seems
	span     rewindSpan
	begun    bool
	folded   int64      // events, over all passes
	failed   *foldError // of a longer prefix than the one that is replayed
}

// run repairs the stream. errLockLost, errStopped: it was given up.
func (p *repair) run(ctx context.Context) error {
	if p.stopped() {
		return errStopped
	}
	read, err := retry(ctx, p.runner, func() (db.ReadClaimedRow, error) {
		return p.query.ReadClaimed(ctx, p.pool, db.ReadClaimedParams{
			Perspective: p.claimed.PerspectiveName, GenerationID: p.claimed.GenerationID, StreamID: p.streamID,
		})
	})
	if err != nil {
		return err
	}
	p.tenantID, p.flagged, p.suspect = read.TenantID, read.Flagged, read.Deaths > 0
	if p.options, err = parseOptions[perspectiveOptions](read.Options); err != nil {
		return err
	}
	if p.flagged {
		logRequired(p.log, p.claimed.LastEventID, p.claimed.TriggerEventID, p.claimed.EventsBehind)
		p.telemetry.eventsBehind.Record(ctx, p.claimed.EventsBehind, ofPerspective(p.claimed.PerspectiveName))
	}
	ctx, p.span = p.startSpan(ctx, p.claimed, p.flagged)
	defer p.span.End()
	ctx, stopKeeping := p.keepLock(ctx)
	defer stopKeeping()

	result, err := p.replayAndComplete(ctx)
	switch {
	case sqlState(err) == "RW008", err != nil && errors.Is(context.Cause(ctx), errLockLost):
		return errLockLost
	case err != nil:
		return err
	case p.failed != nil:
		p.reportFailure(ctx, p.failed.message)
	default:
		p.report(ctx, result)
	}
	return nil
}

func (p *repair) report(ctx context.Context, result *replay) {
	if !p.flagged {
		p.log.Info("stream caught up", slog.Int64("events_folded", result.folded))
		return
	}
	took := time.Since(p.started)
	logCompleted(p.log, result.folded, took, result.source)
	p.span.completed(result.folded)
	of := ofPerspective(p.claimed.PerspectiveName)
	p.telemetry.duration.Record(ctx, milliseconds(took), of)
	p.telemetry.eventsReplayed.Record(ctx, result.folded, of)
}

func (p *repair) reportFailure(ctx context.Context, message string) {
	p.log.Error("rewind failed, will be tried again", logID(logRewindFailed), eventAttr("trigger_event_id", p.claimed.TriggerEventID),
		slog.String("error", message))
	p.span.failed(message)
	p.telemetry.errors.Add(ctx, 1, ofPerspective(p.claimed.PerspectiveName))
}

// replayAndComplete replays the stream and writes the result. Where the fold fails, that is the longest prefix that folds, and the
// failure beside it. A replay that turns out to be incomplete is done again from the beginning.
func (p *repair) replayAndComplete(ctx context.Context) (*replay, error) {
	var toVersion *int64
	inFull := false
	for {
		result, err := p.begin(ctx, toVersion, inFull)
		if err != nil {
			return nil, err
		}
		failed, err := result.run(ctx, toVersion == nil)
		p.folded += result.folded
		if err != nil {
			return nil, err
		}
		if failed != nil {
			p.failed = failed
			if toVersion, err = result.foldingPrefix(ctx, failed); err != nil {
				return nil, err
			}
			if toVersion == nil {
				return result, p.completeFailed(ctx, failed)
			}
			continue
		}
		err = p.complete(ctx, result)
		if sqlState(err) != "RW013" || inFull {
			return result, err
		}
		p.log.Warn("replay incomplete, replaying from the beginning", slog.Any("error", err))
		toVersion, inFull, p.failed = nil, true, nil
	}
}

// complete writes a replay; if a longer prefix failed, that beside it.
func (p *repair) complete(ctx context.Context, result *replay) error {
	snapshots, err := json.Marshal(result.snapshots)
	if err != nil {
		return fmt.Errorf("encode the snapshots: %w", err)
	}
	options := completionOptions{EventsFolded: p.folded}
	if p.failed != nil {
		options.Error, options.ErrorEventID = &p.failed.message, &p.failed.eventID
	}
	return p.write(ctx, db.CompleteCursorWorkParams{
		Model:           result.model,
		LastEventID:     result.lastEventID,
		AppliedVersion:  result.headVersion,
		EventsApplied:   result.eventsApplied,
		SnapshotEventID: result.restoreEventID,
		Snapshots:       snapshots,
	}, options)
}

// completeFailed records a failure and writes nothing else.
func (p *repair) completeFailed(ctx context.Context, failed *foldError) error {
	return p.write(ctx, db.CompleteCursorWorkParams{Error: &failed.message},
		completionOptions{EventsFolded: p.folded, ErrorEventID: &failed.eventID})
}

type completionOptions struct {
	EventsFolded int64      `json:"events_folded"`
	Error        *string    `json:"error,omitempty"`
	ErrorEventID *uuid.UUID `json:"error_event_id,omitempty"`
}

// write may be told that the lock is lost (RW008) although its first attempt was committed, if only the answer was lost.
func (p *repair) write(ctx context.Context, params db.CompleteCursorWorkParams, options completionOptions) error {
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	params.GenerationID, params.StreamID, params.Token, params.Options = p.claimed.GenerationID, p.streamID, p.claimed.Token, text
	if params.Snapshots == nil {
		params.Snapshots = json.RawMessage("[]")
	}
	_, err = retry(ctx, p.runner, func() (struct{}, error) {
		return struct{}{}, p.query.CompleteCursorWork(ctx, inBoundedTransaction(p.pool), params)
	})
	return err
}

// recordFailure records that a repair failed for another reason than its fold; false if that failed too.
func (p *repair) recordFailure(ctx context.Context, err error) bool {
	message := err.Error()
	p.reportFailure(ctx, message)
	if err := p.write(ctx, db.CompleteCursorWorkParams{Error: &message}, completionOptions{EventsFolded: p.folded}); err != nil {
		p.log.Warn("failure not recorded", slog.Any("error", err))
		return false
	}
	return true
}

// keepLock renews the stream lock until stop is called. The context that it returns ends when the lock is lost.
func (p *repair) keepLock(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(time.Duration(p.options.KeepaliveInterval))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			held, err := p.query.RenewStreamLock(ctx, inTransaction(p.pool), db.RenewStreamLockParams{
				GenerationID: p.claimed.GenerationID, StreamID: p.streamID, Token: p.claimed.Token,
			})
			switch {
			case err != nil:
				p.log.Debug("stream lock not renewed, trying again", slog.Any("error", err))
			case !held:
				cancel(errLockLost)
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		renewing.Wait()
	}
}

func (p *repair) releaseLock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, err := p.query.ReleaseStreamLock(ctx, inTransaction(p.pool), db.ReleaseStreamLockParams{
		GenerationID: p.claimed.GenerationID, StreamID: p.streamID, Token: p.claimed.Token,
	})
	if err != nil {
		p.log.Warn("stream lock not released, it will expire", slog.Any("error", err))
	}
}
