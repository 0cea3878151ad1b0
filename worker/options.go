package worker

import (
	"encoding/json"
	"fmt"
	"time"
)

// options are those of the installation that a worker obeys, as of its last heartbeat.
type options struct {
	MaxConcurrentRewinds int       `json:"max_concurrent_rewinds"`
	StartupScanEnabled   bool      `json:"startup_scan_enabled"`
	StartupRewindMode    string    `json:"startup_rewind_mode"`
	SpansEnabled         bool      `json:"spans_enabled"`
	LogLevel             logLevels `json:"log_level"`
}

// startupBlocking is the startup_rewind_mode in which a worker repairs what is flagged before it does anything else.
const startupBlocking = "blocking"

// perspectiveOptions are those of a perspective that its repairs obey.
type perspectiveOptions struct {
	SnapshotInterval  int64    `json:"rewind_snapshot_interval_events"`
	KeepaliveInterval duration `json:"stream_lock_keepalive_interval"`
}

// duration in JSON is text as time.ParseDuration reads it.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

func parseOptions[T any](text json.RawMessage) (o T, err error) {
	if err := json.Unmarshal(text, &o); err != nil {
		return o, fmt.Errorf("read the options: %w", err)
	}
	return o, nil
}
