package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/bits"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	// maxCatchUpPasses bounds how often a replay goes on with what arrived meanwhile; the live path takes over then.
	maxCatchUpPasses = 100
	maxPageEvents    = 10_000
	// A page of a fold in Go is in this process' memory.
	maxGoPageEvents = 2_000
	maxGoPageBytes  = 4 << 20
)

// Where a replay starts.
const (
	sourceSnapshot = "snapshot"
	sourceFull     = "full"
	sourceCursor   = "cursor" // nothing that is owed is late
)

// replay folds the prefix of a stream up to a version, in chronology, from a restore point on; no transaction is open meanwhile.
type replay struct {
	*repair
	source         string
	restoreEventID *uuid.UUID
	headVersion    int64
	model          json.RawMessage
	lastEventID    *uuid.UUID
	eventsApplied  int64
	remaining      int64 // events up to the head, as far as known
	folded         int64
	snapshots      []snapshot
}

type snapshot struct {
	EventID       uuid.UUID       `json:"event_id"`
	Version       int64           `json:"applied_version"`
	EventsApplied int64           `json:"events_applied"`
	Model         json.RawMessage `json:"model"`
}

// page is what folding the next events brought.
type page struct {
	model       json.RawMessage
	lastEventID *uuid.UUID
	folded      int64
	last        bool // no events are left up to the head
	failed      *foldError
}

// begin chooses where to replay from, up to a version (nil: the head).
func (p *repair) begin(ctx context.Context, toVersion *int64, inFull bool) (*replay, error) {
	start, err := retry(ctx, p.runner, func() (db.RewindReplayStart, error) {
		return p.query.BeginReplay(ctx, p.pool, db.BeginReplayParams{
			GenerationID: p.claimed.GenerationID, StreamID: p.streamID, ToVersion: toVersion, FromBeginning: inFull,
		})
	})
	if err != nil {
		return nil, err
	}
	p.span.restored(start.ReplaySource)
	if p.flagged && !p.begun {
		p.telemetry.countRewinds(ctx, 1, p.claimed.PerspectiveName, start.ReplaySource == sourceSnapshot, "locked")
	}
	p.begun = true
	switch start.ReplaySource {
	case sourceSnapshot:
		p.log.Warn("restoring snapshot", eventAttr("snapshot_event_id", start.SnapshotEventID), slog.Int64("events_to_replay", start.EventsToFold))
	case sourceFull:
		p.log.Warn("replaying in full", slog.Int64("events_to_replay", start.EventsToFold))
	}
	if start.ReplaySource != sourceCursor {
		p.announceRewind(ctx, start)
	}
	return &replay{
		repair:         p,
		source:         start.ReplaySource,
		restoreEventID: start.RestoreEventID,
		headVersion:    start.HeadVersion,
		model:          start.Model,
		lastEventID:    start.RestoreEventID,
		eventsApplied:  start.EventsApplied,
		remaining:      start.EventsToFold,
		snapshots:      []snapshot{},
	}, nil
}

// announceRewind publishes that the rewind starts. It goes on if that fails.
func (p *repair) announceRewind(ctx context.Context, start db.RewindReplayStart) {
	err := p.query.AnnounceRewind(ctx, inTransaction(p.pool), db.AnnounceRewindParams{
		GenerationID: p.claimed.GenerationID, StreamID: p.streamID, Token: p.claimed.Token,
		TriggerEventID: start.TriggerEventID, SnapshotEventID: start.SnapshotEventID,
	})
	if err != nil {
		p.log.Debug("rewind not announced", slog.Any("error", err))
	}
}

// run folds page after page to the head. toHead: it then goes on with what has arrived meanwhile and is in order.
func (p *replay) run(ctx context.Context, toHead bool) (*foldError, error) {
	for pass := 0; ; pass++ {
		if failed, err := p.foldPages(ctx); failed != nil || err != nil {
			return failed, err
		}
		if !toHead || pass == maxCatchUpPasses {
			return nil, nil
		}
		head, err := retry(ctx, p.runner, func() (int64, error) {
			return p.query.ExtendReplay(ctx, p.pool, db.ExtendReplayParams{
				GenerationID: p.claimed.GenerationID, StreamID: p.streamID, LastEventID: p.lastEventID, ToVersion: p.headVersion,
			})
		})
		if head == 0 || err != nil {
			return nil, err
		}
		p.remaining = head - p.headVersion
		p.headVersion = head
	}
}

func (p *replay) foldPages(ctx context.Context) (*foldError, error) {
	for {
		if p.stopped() {
			return nil, errStopped
		}
		limit := pageLimit(p.remaining, p.options.SnapshotInterval)
		folded, err := retry(ctx, p.runner, func() (page, error) { return p.foldPage(ctx, limit) })
		if err != nil {
			return nil, err
		}
		p.folded += folded.folded
		if folded.failed != nil {
			return folded.failed, nil
		}
		p.model, p.lastEventID = folded.model, folded.lastEventID
		p.eventsApplied += folded.folded
		p.remaining -= folded.folded
		if folded.folded > 0 && p.eventsApplied >= p.options.SnapshotInterval && isSnapshotDue(p.remaining, p.options.SnapshotInterval) {
			p.snapshots = append(p.snapshots, snapshot{*p.lastEventID, p.headVersion, p.eventsApplied, p.model})
		}
		if folded.last {
			return nil, nil
		}
	}
}

func (p *replay) foldPage(ctx context.Context, limit int64) (page, error) {
	perspective, inGo, err := p.goFold(ctx, p.claimed.PerspectiveName, p.claimed.GenerationID)
	if err != nil {
		return page{}, err
	}
	if inGo {
		return p.foldGoPage(ctx, perspective, min(limit, maxGoPageEvents))
	}
	row, err := p.query.ReplayPage(ctx, inBoundedTransaction(p.pool), db.ReplayPageParams{
		GenerationID: p.claimed.GenerationID, StreamID: p.streamID, Model: p.model, AfterEventID: p.lastEventID,
		ToVersion: p.headVersion, EventLimit: int32(limit),
	})
	if err != nil {
		return page{}, err
	}
	result := page{model: row.Model, lastEventID: row.LastEventID, folded: row.EventsFolded, last: row.EventsFolded < limit}
	if row.Error != nil {
		result.failed = &foldError{message: *row.Error, eventID: *row.ErrorEventID}
	}
	return result, nil
}

func (p *replay) foldGoPage(ctx context.Context, perspective goPerspective, limit int64) (page, error) {
	rows, err := p.query.ReadReplay(ctx, p.pool, db.ReadReplayParams{
		GenerationID: p.claimed.GenerationID, StreamID: p.streamID, AfterEventID: p.lastEventID, ToVersion: p.headVersion,
		EventLimit: int32(limit), MaxBytes: maxGoPageBytes,
	})
	if err != nil {
		return page{}, err
	}
	if len(rows) == 0 {
		return page{model: p.model, lastEventID: p.lastEventID, last: true}, nil
	}
	events := make([]streamEvent, len(rows))
	for i, row := range rows {
		events[i] = streamEvent{
			Event:   newEvent(p.streamID, p.claimed.StreamKey, p.tenantID, *row.EventID, *row.EventType, row.Payload, row.Metadata),
			skipped: row.Skipped,
		}
	}
	release, err := p.startFolding(ctx)
	if err != nil {
		return page{}, err
	}
	defer release()
	result, failed := perspective.foldEvents(p.model, events)
	return page{model: result.model, lastEventID: rows[len(rows)-1].EventID, folded: int64(len(rows)), failed: failed}, nil
}

// foldingPrefix returns the version of the longest prefix that may fold when this one fails; nil if there is none.
func (p *replay) foldingPrefix(ctx context.Context, failed *foldError) (*int64, error) {
	version, err := retry(ctx, p.runner, func() (int64, error) {
		return p.query.FoldingPrefix(ctx, p.pool, db.FoldingPrefixParams{
			GenerationID: p.claimed.GenerationID, StreamID: p.streamID, ErrorEventID: failed.eventID, ToVersion: p.headVersion,
		})
	})
	if version == 0 || err != nil {
		return nil, err
	}
	return &version, nil
}

// pageLimit is how many events to fold until a snapshot is due. Snapshots of a replay stand at distances 0, n, 3n, 7n, … from its end,
// so that a next late event finds one at most about twice its own depth away.
func pageLimit(remaining, n int64) int64 {
	if remaining <= 0 {
		return maxPageEvents
	}
	steps := bits.Len64(uint64((remaining-1)/n+1)) - 1
	return min(maxPageEvents, remaining-n*(1<<steps-1))
}

// isSnapshotDue tells whether a page that ends with so many events remaining ends where a snapshot is due.
func isSnapshotDue(remaining, n int64) bool {
	steps := remaining / n
	return remaining%n == 0 && steps&(steps+1) == 0
}
