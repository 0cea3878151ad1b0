package worker

import (
	"context"

	"github.com/rewindpg/rewind/internal/db"
)

// applyBatch applies the next batch of a partition. pgx.ErrNoRows: another session has the partition.
func (r *runner) applyBatch(ctx context.Context, item db.RewindWork, limit int) (db.RewindBatchResult, error) {
	return r.query.ApplyPerspectiveBatch(ctx, inTransaction(r.pool), db.ApplyPerspectiveBatchParams{
		Perspective: item.PerspectiveName,
		Partition:   *item.WalPartition,
		RecordLimit: int32(limit),
		Generation:  item.GenerationID,
	})
}
