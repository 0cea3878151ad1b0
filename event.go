package rewind

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Event is what a fold sees of an event: what happened, and when. Nothing tells when or in which order events arrived, so that a fold
// can't depend on it.
type Event struct {
	StreamID   uuid.UUID       `json:"stream_id"`
	StreamKey  string          `json:"stream_key"`
	TenantID   string          `json:"tenant_id"`
	ID         uuid.UUID       `json:"event_id"`
	Type       string          `json:"event_type"`
	OccurredAt time.Time       `json:"occurred_at"`
	Payload    json.RawMessage `json:"payload"`
	Metadata   json.RawMessage `json:"metadata"`
}

// EventTime returns the time in a UUIDv7, to the microsecond: 48 bits of milliseconds and 12 bits of fractions of one (RFC 9562, method 3).
func EventTime(id uuid.UUID) time.Time {
	first := binary.BigEndian.Uint64(id[:8])
	return time.UnixMicro(int64(first>>16)*1000 + (int64(first&0xfff)*1000+2048)/4096).UTC()
}
