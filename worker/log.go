package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Log entries that people look for by number.
const (
	logLockNotAcquired = 43
	logRewindRequired  = 52
	logRewindCompleted = 53
	logScanStarted     = 54
	logScanCompleted   = 55
	logScanFailed      = 56
	logNothingFlagged  = 57
	logRewindFailed    = 58
)

// Categories of log entries. The option log_level has a level for each.
const (
	categoryWorker      = "Worker"
	categoryPerspective = "PerspectiveWorker"
	categoryStartupScan = "PerspectiveStartupScan"
)

// category logs with a level of its own.
type category struct {
	*slog.Logger
	name  string
	level *slog.LevelVar
}

func newCategory(logger *slog.Logger, name string) category {
	level := new(slog.LevelVar)
	handler := levelHandler{logger.Handler(), level}
	return category{slog.New(handler).With(slog.String("category", name)), name, level}
}

// levelHandler passes on what has at least a level.
type levelHandler struct {
	slog.Handler
	level slog.Leveler
}

func (h levelHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level.Level() && h.Handler.Enabled(ctx, level)
}

func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.level}
}

func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.level}
}

// logLevels are read from text like "info,PerspectiveWorker=warn": the level of all categories, and those of single ones.
type logLevels struct {
	general slog.Level
	of      map[string]slog.Level
}

func (l *logLevels) UnmarshalText(text []byte) error {
	general, rest, _ := strings.Cut(string(text), ",")
	if err := l.general.UnmarshalText([]byte(general)); err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	l.of = map[string]slog.Level{}
	for part := range strings.SplitSeq(rest, ",") {
		name, text, _ := strings.Cut(part, "=")
		if name == "" {
			continue
		}
		var level slog.Level
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("log level of %s: %w", name, err)
		}
		l.of[name] = level
	}
	return nil
}

func (l *logLevels) apply(to ...category) {
	for _, c := range to {
		level, ok := l.of[c.name]
		if !ok {
			level = l.general
		}
		c.level.Set(level)
	}
}

// streamAttrs say which stream of which perspective an entry is about.
func streamAttrs(perspective string, streamID uuid.UUID, streamKey string) slog.Attr {
	return slog.Group("",
		slog.String("perspective_name", perspective), slog.String("stream_id", streamID.String()), slog.String("stream_key", streamKey))
}

func logRequired(log *slog.Logger, cursorEventID, triggerEventID *uuid.UUID, eventsBehind int64) {
	log.Warn("rewind required", logID(logRewindRequired), eventAttr("cursor_event_id", cursorEventID),
		eventAttr("trigger_event_id", triggerEventID), slog.Int64("events_behind", eventsBehind))
}

func logCompleted(log *slog.Logger, eventsReplayed int64, took time.Duration, source string) {
	log.Warn("rewind completed", logID(logRewindCompleted), slog.Int64("events_replayed", eventsReplayed),
		slog.Int64("duration_ms", took.Milliseconds()), slog.String("replay_source", source))
}

func logID(id int) slog.Attr { return slog.Int("log_id", id) }

// eventAttr is an event id, or null.
func eventAttr(key string, id *uuid.UUID) slog.Attr {
	if id == nil {
		return slog.Any(key, nil)
	}
	return slog.String(key, id.String())
}
