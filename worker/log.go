package worker

import (
	"log/slog"

	"github.com/google/uuid"
)

// Log entries that people look for by number.
const (
	logLockNotAcquired = 43
	logRewindRequired  = 52
	logRewindCompleted = 53
	logRewindFailed    = 58
)

const categoryWorker = "PerspectiveWorker"

// streamAttrs say which stream of which perspective an entry is about.
func streamAttrs(perspective string, streamID uuid.UUID, streamKey string) slog.Attr {
	return slog.Group("",
		slog.String("perspective_name", perspective), slog.String("stream_id", streamID.String()), slog.String("stream_key", streamKey))
}

func logID(id int) slog.Attr { return slog.Int("log_id", id) }

// eventAttr is an event id, or null.
func eventAttr(key string, id *uuid.UUID) slog.Attr {
	if id == nil {
		return slog.Any(key, nil)
	}
	return slog.String(key, id.String())
}
