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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/db"
	"github.com/rewindpg/rewind/migrate"
)

// Modes of a rebuild.
const (
	// BlueGreen builds a new generation beside the active one and shows it when it is whole.
	BlueGreen = "blue-green"
	// InPlace empties the active generation and fills it again.
	InPlace = "in-place"
	// SelectedStreams replays some streams of the active generation from their beginnings.
	SelectedStreams = "streams"
)

const (
	// watchInterval is how often a rebuild is looked at.
	watchInterval = 100 * time.Millisecond
	// leadTimeout is how long a process that leads a rebuild may be stopped.
	leadTimeout = 30 * time.Second
	// leadPatience is how long a process waits for the one that led a rebuild, which may just have ended.
	leadPatience = 2 * time.Second
	// swapBatchSize bounds the records of a batch before a swap.
	swapBatchSize = 5000
	// waitsForUnread is what a rebuild waits for whose generation has to be read to the end while nothing else moves.
	waitsForUnread = "unread records"
	// waitsForRelease is what a rebuild waits for that was held.
	waitsForRelease = "release"
)

// ErrRebuildRunning says that another process is at the same rebuild.
var ErrRebuildRunning = errors.New("the rebuild is already running")

// Rebuild says what to rebuild.
type Rebuild struct {
	Perspective string
	// Mode is one of BlueGreen (the default), InPlace and SelectedStreams.
	Mode string
	// Streams by key, of TenantID, for SelectedStreams.
	Streams  []string
	TenantID string
	// Check looks at a generation that is built, before it is shown. If it returns an error the rebuild fails.
	Check func(ctx context.Context, generationID int) error
	// Progress is told how far the rebuild is, again and again.
	Progress func(RebuildProgress)
}

// RebuildProgress is how far a rebuild is.
type RebuildProgress struct {
	Streams, Events int64
	// EventsTotal is how many records there were when the rebuild began.
	EventsTotal int64
	// Share of the work that is done, from 0 to 1.
	Share float64
	// WaitsFor says why it has not ended, when all is built.
	WaitsFor string
}

// RebuildResult is how a rebuild went.
type RebuildResult struct {
	PerspectiveName string
	Mode            string
	// State is completed, failed or aborted.
	State           string
	Streams, Events int64
	Duration        time.Duration
	FailedStreams   []FailedStream
	Error           string
}

// FailedStream is a stream that could not be rebuilt.
type FailedStream struct {
	StreamKey string     `json:"stream_key"`
	TenantID  string     `json:"tenant_id"`
	EventID   *uuid.UUID `json:"event_id"`
	Error     string     `json:"error"`
}

// Rebuild begins a rebuild, or goes on with one that was left, works on it together with other workers, and returns when it has ended. When
// ctx ends it stops working: the rebuild stays as it is, and other workers go on with it. ErrRebuildRunning: another process does this
// already. A perspective in Go that isn't registered with this worker is left to others, and waited for.
func (w *Worker) Rebuild(ctx context.Context, request Rebuild) (result RebuildResult, err error) {
	if err := w.start(); err != nil {
		return result, err
	}
	defer w.stop()
	w.rebuilding = true
	perspectives := w.config.Perspectives
	w.config.Perspectives = []string{request.Perspective}
	defer func() { w.rebuilding, w.config.Perspectives = false, perspectives }()
	if err := migrate.Check(ctx, w.pool); err != nil {
		return result, err
	}
	if _, err := w.registerPerspectives(ctx); err != nil {
		return result, err
	}
	begun, err := w.beginRebuild(ctx, request)
	if err != nil {
		return result, err
	}
	letGo, err := w.claimRebuild(ctx, begun)
	if err != nil {
		return result, err
	}
	defer letGo()
	// Whoever led it before may have wanted something else.
	if err := w.query.HoldRebuild(ctx, w.pool, db.HoldRebuildParams{RebuildID: begun.RebuildID, Held: request.Check != nil}); err != nil {
		return result, err
	}
	inGo, err := w.query.FoldsInGo(ctx, w.pool, begun.GenerationID)
	if err != nil {
		return result, err
	}
	if _, registered := w.perspectives[request.Perspective]; inGo && !registered {
		return w.watch(ctx, begun, request, nil)
	}

	working, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.runUntil(working, false) }()
	result, err = w.watch(ctx, begun, request, ended)
	cancel()
	if !errors.Is(err, errEnded) {
		<-ended
	}
	return result, err
}

// errEnded is what watch's errors are when the work has ended by itself.
var errEnded = errors.New("the worker has ended")

func (w *Worker) beginRebuild(ctx context.Context, request Rebuild) (db.RewindPerspectiveRebuild, error) {
	options, err := json.Marshal(map[string]any{"tenant_id": request.TenantID, "hold": request.Check != nil})
	if err != nil {
		return db.RewindPerspectiveRebuild{}, err
	}
	if request.Mode == "" {
		request.Mode = BlueGreen
	}
	begun, err := w.query.BeginRebuild(ctx, inTransaction(w.pool), db.BeginRebuildParams{
		Perspective: request.Perspective, Mode: request.Mode, Streams: request.Streams, Options: options,
	})
	if err != nil {
		return begun, fmt.Errorf("begin the rebuild: %w", err)
	}
	return begun, nil
}

// claimRebuild takes the right to lead a rebuild, until letGo is called. It goes with the connection, or when this process has been stopped
// for a while. The transaction that stays open has no snapshot and writes nothing, so it is in nobody's way.
func (w *Worker) claimRebuild(ctx context.Context, rebuild db.RewindPerspectiveRebuild) (letGo func(), err error) {
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	begin := []statement{
		{sql: beginStatement},
		{sql: `select set_config('idle_in_transaction_session_timeout', $1, true)`, args: []any{fmt.Sprint(leadTimeout.Milliseconds())}},
	}
	claimed, err := w.query.ClaimRebuild(ctx, pipeline{sender: conn, before: begin}, rebuild.GenerationID)
	for began := time.Now(); err == nil && !claimed; {
		if time.Since(began) > leadPatience {
			err = ErrRebuildRunning
			break
		}
		time.Sleep(watchInterval)
		claimed, err = w.query.ClaimRebuild(ctx, conn, rebuild.GenerationID)
	}
	if err != nil {
		conn.Release() // which closes the connection, since the transaction is open
		return nil, err
	}
	leading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() {
		defer func() {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			_ = rollback(ending, conn, nil) // else the connection is closed
			conn.Release()
		}()
		ticker := time.NewTicker(leadTimeout / 6)
		defer ticker.Stop()
		for {
			select {
			case <-leading.Done():
				return
			case <-ticker.C:
				if err := conn.Ping(leading); err != nil {
					return // the rebuild goes on, and another process may lead it too
				}
			}
		}
	})
	return func() {
		cancel()
		keeping.Wait()
	}, nil
}

// watch waits for the end of a rebuild. ended brings the error with which the work on it ended.
func (w *Worker) watch(ctx context.Context, rebuild db.RewindPerspectiveRebuild, request Rebuild, ended <-chan error) (RebuildResult, error) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		p, err := w.query.RebuildProgress(ctx, w.pool, rebuild.RebuildID)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return RebuildResult{}, fmt.Errorf("perspective %q was dropped", rebuild.PerspectiveName)
		case err != nil && !isTransient(err):
			return RebuildResult{}, fmt.Errorf("watch the rebuild: %w", err)
		case err == nil && p.State != "running":
			return resultOf(p)
		case err == nil:
			if request.Progress != nil {
				request.Progress(progressOf(p))
			}
			if request.Check != nil && p.WaitsFor != nil && *p.WaitsFor == waitsForRelease {
				if err := w.check(ctx, rebuild, request.Check); err != nil {
					return RebuildResult{}, err
				}
				request.Check = nil
			}
		}
		select {
		case <-ctx.Done():
			return RebuildResult{}, ctx.Err()
		case err := <-ended:
			return RebuildResult{}, fmt.Errorf("%w: %w", errEnded, err)
		case <-ticker.C:
		}
	}
}

// check lets a rebuild end that was held, or fail.
func (w *Worker) check(ctx context.Context, rebuild db.RewindPerspectiveRebuild, check func(context.Context, int) error) error {
	if err := check(ctx, int(rebuild.GenerationID)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.query.FailRebuild(ctx, w.pool, db.FailRebuildParams{RebuildID: rebuild.RebuildID, Error: err.Error()})
	}
	return w.query.HoldRebuild(ctx, w.pool, db.HoldRebuildParams{RebuildID: rebuild.RebuildID, Held: false})
}

func progressOf(p db.RewindRebuildProgress) RebuildProgress {
	progress := RebuildProgress{Streams: p.Streams, Events: p.Events, EventsTotal: p.EventsTotal, Share: p.Share}
	if p.WaitsFor != nil {
		progress.WaitsFor = *p.WaitsFor
	}
	return progress
}

func resultOf(p db.RewindRebuildProgress) (RebuildResult, error) {
	result := RebuildResult{
		PerspectiveName: p.PerspectiveName, Mode: p.Mode, State: p.State, Streams: p.Streams, Events: p.Events,
		Duration: p.CompletedAt.Sub(p.StartedAt),
	}
	if p.Error != nil {
		result.Error = *p.Error
	}
	return result, json.Unmarshal(p.FailedStreams, &result.FailedStreams)
}

// endRebuilds tries to end rebuilds of which all seems done.
func (r *runner) endRebuilds(ctx context.Context) {
	for _, item := range r.finished {
		if r.ending[*item.RebuildID] {
			continue
		}
		r.ending[*item.RebuildID] = true
		r.spawn(func() func() {
			ended, err := r.endRebuild(ctx, item)
			return func() {
				delete(r.ending, *item.RebuildID)
				r.logRebuild(ended, err)
				if err == nil {
					r.progressed(ended.State != "running")
				}
			}
		})
	}
	r.finished = r.finished[:0]
}

func (r *runner) logRebuild(rebuild db.RewindPerspectiveRebuild, err error) {
	log := r.perspectiveLog.With(slog.String("perspective_name", rebuild.PerspectiveName), slog.String("mode", rebuild.Mode))
	switch {
	case errors.Is(err, pgx.ErrNoRows), isOutOfReach(err): // another worker is at it, or it was paused or dropped
	case err != nil:
		r.perspectiveLog.Debug("rebuild not ended, trying again", slog.Any("error", err))
	case rebuild.State == "completed":
		log.Info("rebuild completed", slog.Int("generation_id", int(rebuild.GenerationID)))
	case rebuild.State == "failed":
		log.Error("rebuild failed", slog.Int("generation_id", int(rebuild.GenerationID)), slog.String("error", *rebuild.Error))
	}
}

func (r *runner) endRebuild(ctx context.Context, item db.RewindWork) (ended db.RewindPerspectiveRebuild, err error) {
	if err := r.query.PrepareSwap(ctx, inTransaction(r.pool), *item.RebuildID); err != nil {
		return ended, err
	}
	ended, err = r.query.FinishRebuild(ctx, inBoundedTransaction(r.pool), *item.RebuildID)
	if err != nil {
		return ended, err
	}
	perspective, inGo, err := r.goFold(ctx, item.PerspectiveName, item.GenerationID)
	if err != nil || !inGo || ended.State != "running" || ended.WaitsFor == nil || *ended.WaitsFor != waitsForUnread {
		return ended, err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return ended, err
	}
	defer conn.Release() // which closes the connection if the transaction is still open
	return r.swapGo(ctx, conn, item, perspective)
}

// swapGo reads a generation that folds in Go to the end, and shows it, in one transaction, in which nothing of the active one moves.
func (r *runner) swapGo(
	ctx context.Context, conn *pgxpool.Conn, item db.RewindWork, perspective goPerspective,
) (ended db.RewindPerspectiveRebuild, err error) {
	heads, err := r.query.BeginSwap(ctx, pipeline{sender: conn, before: []statement{{sql: beginStatement}, {sql: boundStatement}}}, *item.RebuildID)
	if err != nil {
		return ended, err
	}
	if len(heads) == 0 {
		return ended, rollback(ctx, conn, pgx.ErrNoRows)
	}
	for _, head := range heads {
		for head.NextOffset < head.HeadOffset {
			partition := db.RewindWork{
				GenerationID: item.GenerationID, PerspectiveName: item.PerspectiveName, WalPartition: &head.WalPartition, NextOffset: &head.NextOffset,
			}
			batch, err := r.foldGoBatchOn(ctx, pipeline{sender: conn}, conn, partition, perspective, swapBatchSize, false)
			if err != nil {
				return ended, err
			}
			head.NextOffset = batch.NextOffset
		}
	}
	text, err := json.Marshal(swapHeads(heads))
	if err != nil {
		return ended, err
	}
	return r.query.FinishReadRebuild(ctx, pipeline{sender: conn, after: []statement{{sql: commitStatement}}}, db.FinishReadRebuildParams{
		RebuildID: *item.RebuildID, Heads: text,
	})
}

type swapHead struct {
	WalPartition int32 `json:"wal_partition"`
	HeadOffset   int64 `json:"head_offset"`
}

func swapHeads(heads []db.RewindSwapHead) []swapHead {
	list := make([]swapHead, len(heads))
	for i, h := range heads {
		list[i] = swapHead{h.WalPartition, h.HeadOffset}
	}
	return list
}
