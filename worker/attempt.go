package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/db"
)

// A fold in Go can end this process (os.Exit, no memory left), and so would the next process that folds the same. So a process puts its
// first batch of a partition on record before it folds it, and takes it off when it outlived it. A batch that it finds on record has ended
// a process, or was folded while something else did. It is done again in pieces, and nothing else is folded in Go meanwhile: in the end
// what ends the process is a single record, whose stream is parked. Later batches go on no record: they come first in the next process.
// A repair is on record by its stream lock; one that was left to expire is done again with nothing folded beside it.

const (
	foldingAlone = 1 << 20
	// aloneTimeout bounds how long others may have to wait for a batch that is to be folded alone.
	aloneTimeout = 5 * time.Second
	// maxDeaths of processes by a record that was folded alone: one may have had another reason.
	maxDeaths = 2
)

// applyCarefully applies a batch that is folded here.
func (r *runner) applyCarefully(ctx context.Context, item db.RewindWork, perspective goPerspective, limit int) (db.RewindAppliedBatch, error) {
	if _, ok := r.outlived.Load(partitionOf(item)); ok {
		return r.foldBeside(ctx, 1, func() (db.RewindAppliedBatch, error) { return r.applyGoBatch(ctx, item, perspective, limit) })
	}
	suspect := false
	result, err := r.foldBeside(ctx, 1, func() (result db.RewindAppliedBatch, err error) {
		attempt, err := r.beginAttempt(ctx, item, limit, false)
		if suspect = attempt.IsSuspect; suspect || err != nil {
			return result, err
		}
		return r.attempt(ctx, item, perspective, attempt)
	})
	if !suspect || err != nil {
		return result, err
	}
	waiting, cancel := context.WithTimeout(ctx, aloneTimeout)
	defer cancel()
	return r.foldBeside(waiting, foldingAlone, func() (result db.RewindAppliedBatch, err error) {
		attempt, err := r.beginAttempt(ctx, item, limit, true)
		switch {
		case err != nil:
			return result, err
		case attempt.Deaths >= maxDeaths:
			return r.parkRecord(ctx, item, attempt.Deaths)
		}
		return r.attempt(ctx, item, perspective, attempt)
	})
}

// foldBeside folds when no more is folded in Go beside it than may be. If that takes too long, it is as if another worker had the batch.
func (r *runner) foldBeside(ctx context.Context, n int64, fold func() (db.RewindAppliedBatch, error)) (db.RewindAppliedBatch, error) {
	if err := r.folding.Acquire(ctx, n); err != nil {
		return db.RewindAppliedBatch{}, pgx.ErrNoRows
	}
	defer r.folding.Release(n)
	return fold()
}

func (r *runner) beginAttempt(ctx context.Context, item db.RewindWork, limit int, alone bool) (db.RewindBegunAttempt, error) {
	return r.query.BeginFoldAttempt(ctx, inTransaction(r.pool), db.BeginFoldAttemptParams{
		GenerationID: item.GenerationID, Partition: *item.WalPartition, AtOffset: *item.NextOffset, RecordLimit: int32(limit),
		Worker: r.config.Name, Alone: alone,
	})
}

// attempt folds a batch that is on record.
func (r *runner) attempt(
	ctx context.Context, item db.RewindWork, perspective goPerspective, attempt db.RewindBegunAttempt,
) (db.RewindAppliedBatch, error) {
	result, err := r.applyGoBatch(ctx, item, perspective, int(attempt.RecordLimit))
	nextOffset := *item.NextOffset
	if err == nil {
		nextOffset = result.NextOffset
	}
	passed := r.endAttempt(ctx, item, nextOffset, !attempt.IsSuspect)
	if passed && err == nil {
		r.outlived.Store(partitionOf(item), true)
	}
	return result, err
}

// endAttempt takes a batch off the record, and tells whether nothing of its partition is suspect any more.
func (r *runner) endAttempt(ctx context.Context, item db.RewindWork, nextOffset int64, passed bool) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	passed, err := r.query.EndFoldAttempt(ctx, inTransaction(r.pool), db.EndFoldAttemptParams{
		GenerationID: item.GenerationID, Partition: *item.WalPartition, NextOffset: nextOffset, Passed: passed,
	})
	if err != nil {
		r.log.Debug("batch stays on record as one that may end its worker", slog.Any("error", err))
	}
	return passed && err == nil
}

// startFolding waits for the turn of a repair's page. One that is suspect is folded alone and is on record as such until it was, unless
// others take too long.
func (p *repair) startFolding(ctx context.Context) (release func(), err error) {
	if p.suspect {
		waiting, cancel := context.WithTimeout(ctx, aloneTimeout)
		defer cancel()
		if p.folding.Acquire(waiting, foldingAlone) == nil {
			if err := p.markAlone(ctx, true); err != nil {
				p.folding.Release(foldingAlone)
				return nil, err
			}
			return func() {
				if err := p.markAlone(context.WithoutCancel(ctx), false); err != nil {
					p.log.Debug("repair stays on record as folded alone", slog.Any("error", err))
				}
				p.folding.Release(foldingAlone)
			}, nil
		}
	}
	if err := p.folding.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { p.folding.Release(1) }, nil
}

func (p *repair) markAlone(ctx context.Context, alone bool) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	marked, err := p.query.MarkAlone(ctx, p.pool, db.MarkAloneParams{
		GenerationID: p.claimed.GenerationID, StreamID: p.streamID, Token: p.claimed.Token, Alone: alone,
	})
	if err == nil && marked == 0 {
		return errLockLost
	}
	return err
}

// parkRecord sets the stream of the next record apart for good, since its fold ends the process.
func (r *runner) parkRecord(ctx context.Context, item db.RewindWork, deaths int32) (result db.RewindAppliedBatch, err error) {
	reason := fmt.Errorf("the fold ended the process of its worker %d times", deaths)
	if result.Failed, err = r.failRecord(ctx, item, reason, true); err != nil {
		return result, err
	}
	r.endAttempt(ctx, item, *item.NextOffset, true)
	result.NextOffset, result.HeadOffset = *item.NextOffset, *item.NextOffset+1
	return result, nil
}
