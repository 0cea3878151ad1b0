package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	// maxBatchBytes bounds what a batch that is folded in Go has to be read, and once more what its repairs have.
	maxBatchBytes = 4 << 20
	// Over a Unix socket the server can't tell that a worker has stopped reading: there a batch fits into the socket's buffer (208 kB).
	maxLocalBatchBytes = 80 << 10
	// maxLoggedFailures bounds the log entries of one batch.
	maxLoggedFailures = 20
)

// applyBatch applies the next batch of a partition. pgx.ErrNoRows: another session has the partition.
func (r *runner) applyBatch(ctx context.Context, item db.RewindWork, limit int) (db.RewindAppliedBatch, error) {
	perspective, inGo, err := r.goFold(ctx, item.PerspectiveName, item.GenerationID)
	if err != nil {
		return db.RewindAppliedBatch{}, err
	}
	if inGo {
		return r.applyCarefully(ctx, item, perspective, limit)
	}
	// One round trip: if this process is stopped in the middle, the server goes on without it.
	result, err := r.query.ApplyBatch(ctx, inBoundedTransaction(r.pool), db.ApplyBatchParams{
		GenerationID: item.GenerationID, Partition: *item.WalPartition, RecordLimit: int32(limit),
	})
	if err == nil && result.Failed > 0 {
		r.logNewFailures(ctx, item, result.Failed)
	}
	return result, err
}

// logNewFailures says which streams failed in a batch that the database folded. Losing the entries is no failure of the batch.
func (r *runner) logNewFailures(ctx context.Context, item db.RewindWork, count int64) {
	failures, err := r.query.ReadNewFailures(ctx, r.pool, db.ReadNewFailuresParams{
		GenerationID: item.GenerationID, Partition: *item.WalPartition, StreamLimit: int32(min(count, maxLoggedFailures)),
	})
	if err != nil {
		r.perspectiveLog.Warn("streams failed, and can't be named", slog.Int64("streams", count), slog.Any("error", err))
		return
	}
	for _, f := range failures {
		r.perspectiveLog.Error("fold failed, will be tried again", streamAttrs(item.PerspectiveName, f.StreamID, f.StreamKey),
			eventAttr("event_id", f.ErrorEventID), slog.String("error", f.Error))
	}
}

// narratedRepair is a repair that a batch made and put on record.
type narratedRepair struct {
	StreamID       uuid.UUID  `json:"stream_id"`
	StreamKey      string     `json:"stream_key"`
	CursorEventID  *uuid.UUID `json:"cursor_event_id"`
	TriggerEventID *uuid.UUID `json:"trigger_event_id"`
	EventsBehind   int64      `json:"events_behind"`
	EventsReplayed int64      `json:"events_replayed"`
	ReplaySource   string     `json:"replay_source"`
}

// logNarrated logs repairs that a batch put on record as those of the rewind path are; they took no longer than their batch.
func (r *runner) logNarrated(item db.RewindWork, narrated json.RawMessage, took time.Duration) {
	var repairs []narratedRepair
	if len(narrated) > 0 {
		if err := json.Unmarshal(narrated, &repairs); err != nil {
			r.perspectiveLog.Warn("repairs can't be named", slog.Any("error", err))
			return
		}
	}
	for _, p := range repairs {
		log := r.perspectiveLog.With(streamAttrs(item.PerspectiveName, p.StreamID, p.StreamKey))
		logRequired(log, p.CursorEventID, p.TriggerEventID, p.EventsBehind)
		logCompleted(log, p.EventsReplayed, took, p.ReplaySource)
	}
}

// failRecord takes the failure of a batch of one record, by its fold as it seems, for one of that record's stream, so that the others go
// on. It returns how many streams that are. park: it isn't tried again by itself.
func (r *runner) failRecord(ctx context.Context, item db.RewindWork, reason error, park bool) (int64, error) {
	r.perspectiveLog.Error("fold fails its batch, setting its stream apart", slog.String("perspective_name", item.PerspectiveName),
		slog.Int("wal_partition", int(*item.WalPartition)), slog.Int64("wal_offset", *item.NextOffset), slog.Any("error", reason))
	failed, err := retry(ctx, r, func() (bool, error) {
		return r.query.FailRecord(ctx, inTransaction(r.pool), db.FailRecordParams{
			GenerationID: item.GenerationID, Partition: *item.WalPartition, AtOffset: *item.NextOffset, Error: reason.Error(), Park: park,
		})
	})
	if !failed || err != nil {
		return 0, err
	}
	return 1, nil
}

// applyGoBatch applies a batch that is folded here. If the database takes one of the models for no JSON (as one with \u0000 in it), the
// batch is done again, model by model, so that this fails one stream and not the batch.
func (r *runner) applyGoBatch(ctx context.Context, item db.RewindWork, perspective goPerspective, limit int) (db.RewindAppliedBatch, error) {
	result, err := r.foldGoBatch(ctx, item, perspective, limit, false)
	if isDataError(err) {
		result, err = r.foldGoBatch(ctx, item, perspective, limit, true)
	}
	return result, err
}

// foldGoBatch reads a batch, folds it and writes it, in one transaction.
func (r *runner) foldGoBatch(
	ctx context.Context, item db.RewindWork, perspective goPerspective, limit int, checkModels bool,
) (result db.RewindAppliedBatch, err error) {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return result, err
	}
	defer conn.Release() // which closes the connection if the transaction is still open
	return r.foldGoBatchOn(ctx, pipeline{conn, []statement{{sql: beginStatement}}, []statement{{sql: commitStatement}}}, conn, item, perspective,
		limit, checkModels)
}

// foldGoBatchOn does foldGoBatch's work on a connection, with what the transaction begins and ends with.
func (r *runner) foldGoBatchOn(
	ctx context.Context, transaction pipeline, conn *pgxpool.Conn, item db.RewindWork, perspective goPerspective, limit int, checkModels bool,
) (result db.RewindAppliedBatch, err error) {
	maxBytes := int64(maxBatchBytes)
	if strings.HasPrefix(conn.Conn().Config().Host, "/") {
		maxBytes = maxLocalBatchBytes
	}
	rows, err := r.query.ReadGoBatch(ctx, pipeline{sender: conn, before: transaction.before}, db.ReadGoBatchParams{
		GenerationID: item.GenerationID, Partition: *item.WalPartition, RecordLimit: int32(limit), MaxBytes: maxBytes,
	})
	if err != nil {
		return result, err
	}
	if len(rows) == 0 {
		return result, rollback(ctx, conn, pgx.ErrNoRows)
	}
	result.RecordsRead = rows[0].ToOffset - rows[0].FromOffset
	result.NextOffset, result.HeadOffset = rows[0].ToOffset, rows[0].HeadOffset

	batch := db.WriteGoBatchParams{GenerationID: item.GenerationID, Partition: *item.WalPartition, ToOffset: rows[0].ToOffset}
	for len(rows) > 0 && rows[0].StreamID != nil {
		n := 1
		for n < len(rows) && *rows[n].StreamID == *rows[0].StreamID {
			n++
		}
		folds, failed := foldStream(perspective, rows[:n])
		if failed == nil && checkModels {
			failed = r.checkModels(ctx, folds, rows[:n])
		}
		if failed != nil {
			r.logFailedFold(item, rows[0], failed)
			addFailure(&batch, rows[0], failed)
		} else {
			addFold(&batch, rows[:n], folds)
			if rows[0].TriggerEventID != nil {
				result.Repaired++
			}
			if rows[0].RestoreEventID != nil {
				result.Restored++
			}
		}
		rows = rows[n:]
	}
	result.Streams, result.Failed = int64(len(batch.StreamIds)), int64(len(batch.FailedStreamIds))

	result.Narrated, err = r.query.WriteGoBatch(ctx, pipeline{sender: conn, after: transaction.after}, batch)
	return result, err
}

func rollback(ctx context.Context, conn *pgxpool.Conn, reason error) error {
	if _, err := conn.Exec(ctx, `rollback`); err != nil {
		return err
	}
	return reason
}

// foldStream folds one stream's events of a batch, which are in chronology.
func foldStream(perspective goPerspective, rows []db.RewindBatchEvent) (folded, *foldError) {
	events := make([]streamEvent, len(rows))
	for i, row := range rows {
		events[i] = streamEvent{
			Event:       newEvent(*row.StreamID, *rows[0].StreamKey, *rows[0].TenantID, *row.EventID, *row.EventType, row.Payload, row.Metadata),
			skipped:     *row.Skipped,
			snapshotDue: *row.SnapshotDue,
		}
	}
	return perspective.foldEvents(rows[0].Model, events)
}

// checkModels asks the database what it takes for JSON.
func (r *runner) checkModels(ctx context.Context, result folded, rows []db.RewindBatchEvent) *foldError {
	models := maps.Clone(result.snapshots)
	models[len(rows)-1] = result.model
	for _, i := range slices.Sorted(maps.Keys(models)) {
		if err := r.query.CheckModel(ctx, r.pool, models[i]); isDataError(err) {
			return &foldError{message: fmt.Sprintf("save the model: %v", err), eventID: *rows[i].EventID}
		}
	}
	return nil
}

func isDataError(err error) bool { return strings.HasPrefix(sqlState(err), "22") }

func (r *runner) logFailedFold(item db.RewindWork, event db.RewindBatchEvent, failed *foldError) {
	attrs := []any{
		streamAttrs(item.PerspectiveName, *event.StreamID, *event.StreamKey), slog.String("event_id", failed.eventID.String()),
		slog.String("error", failed.message),
	}
	if failed.stack != "" {
		attrs = append(attrs, slog.String("stack", failed.stack))
	}
	r.perspectiveLog.Error("fold failed, will be tried again", attrs...)
}

// addFold adds what came of a stream's events to what will be saved.
func addFold(batch *db.WriteGoBatchParams, rows []db.RewindBatchEvent, result folded) {
	first, last := rows[0], rows[len(rows)-1]
	version := int64(0)
	for _, row := range rows {
		version = max(version, *row.StreamVersion)
	}
	batch.StreamIds = append(batch.StreamIds, first.StreamID.String())
	batch.Models = append(batch.Models, string(result.model))
	batch.FirstEventIds = append(batch.FirstEventIds, first.EventID.String())
	batch.LastEventIds = append(batch.LastEventIds, last.EventID.String())
	batch.AppliedVersions = append(batch.AppliedVersions, version)
	batch.EventsApplied = append(batch.EventsApplied, *first.EventsBefore+int64(len(rows)))
	batch.TriggerEventIds = append(batch.TriggerEventIds, orEmpty(first.TriggerEventID))
	batch.RestoreEventIds = append(batch.RestoreEventIds, orEmpty(first.RestoreEventID))
	batch.EventsFolded = append(batch.EventsFolded, int64(len(rows)))
	for i, model := range result.snapshots {
		batch.SnapshotStreamIds = append(batch.SnapshotStreamIds, first.StreamID.String())
		batch.SnapshotEventIds = append(batch.SnapshotEventIds, rows[i].EventID.String())
		batch.SnapshotModels = append(batch.SnapshotModels, string(model))
		batch.SnapshotAppliedVersions = append(batch.SnapshotAppliedVersions, version)
		batch.SnapshotEventsApplied = append(batch.SnapshotEventsApplied, *first.EventsBefore+int64(i+1))
	}
}

func addFailure(batch *db.WriteGoBatchParams, first db.RewindBatchEvent, failed *foldError) {
	batch.FailedStreamIds = append(batch.FailedStreamIds, first.StreamID.String())
	batch.Errors = append(batch.Errors, failed.message)
	batch.ErrorEventIds = append(batch.ErrorEventIds, failed.eventID.String())
	batch.FailedTriggerEventIds = append(batch.FailedTriggerEventIds, orEmpty(first.TriggerEventID))
}

// orEmpty is the text of an id, empty if it is null. Arrays go over as texts, which every execution mode of pgx can encode.
func orEmpty(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}
