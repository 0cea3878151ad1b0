package rewind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind/internal/db"
)

// Record is an entry of the log: what was appended, and its place in both orders.
type Record struct {
	Tree          string          `json:"tree_name"`
	TenantID      string          `json:"tenant_id"`
	StreamKey     string          `json:"stream_key"`
	StreamID      uuid.UUID       `json:"stream_id"`
	Partition     int             `json:"wal_partition"`
	Offset        int64           `json:"wal_offset"`
	HLC           int64           `json:"hlc,string"`
	StreamVersion int64           `json:"stream_version"`
	EventID       uuid.UUID       `json:"event_id"`
	Kind          Kind            `json:"kind"`
	Mode          *int            `json:"mode"`
	Type          string          `json:"event_type"`
	Payload       json.RawMessage `json:"payload"`
	Metadata      json.RawMessage `json:"metadata"`
	Delta         []byte          `json:"delta"`
	EndKey        *string         `json:"end_key"`
	OriginCluster uuid.UUID       `json:"origin_cluster"`
	OriginHLC     *int64          `json:"origin_hlc,string"`
	AppendedAt    time.Time       `json:"appended_at"`

	page *page // of the feed that it came with, and how far that is read after it
	nth  int
}

// Kind is what a record does.
type Kind int

// Kinds of records. An application appends events; the others come with the tree's state.
const (
	KindSet         Kind = 0
	KindDelete      Kind = 1
	KindDeleteRange Kind = 2
	KindTxCommit    Kind = 3
	KindTxAbort     Kind = 4
	KindTombstone   Kind = 5
	KindEvent       Kind = 6
)

// Origin is where a record was authored, as a reader of the feed asks for it.
type Origin string

// Origins: this installation, any other one, or no matter.
const (
	OriginLocal   Origin = "local"
	OriginForeign Origin = "foreign"
	OriginAll     Origin = "all"
)

// Event returns what a fold sees of a record.
func (r Record) Event() Event {
	return Event{
		StreamID:   r.StreamID,
		StreamKey:  r.StreamKey,
		TenantID:   r.TenantID,
		ID:         r.EventID,
		Type:       r.Type,
		OccurredAt: EventTime(r.EventID),
		Payload:    r.Payload,
		Metadata:   r.Metadata,
	}
}

const pageSize = 1000

// ReadStream yields the records of a stream in chronology, a page at a time, so that what is appended meanwhile may be among them. After an
// error there is nothing more. Options: [ByArrival], [AfterEvent] or [AfterVersion], [Tenant].
func ReadStream(ctx context.Context, tx DBTX, tree, stream string, opts ...Option) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		o, err := collect(opts, "ByArrival", "AfterEvent", "AfterVersion", "Tenant")
		if err != nil {
			yield(Record{}, err)
			return
		}
		if o.arrival && o.afterEvent != nil {
			yield(Record{}, errors.New("rewind: option AfterEvent does not go with the order of arrival"))
			return
		}
		page := db.ReadStreamParams{
			Tree: tree, Stream: stream, ReadingOrder: "chronology", AfterEventID: o.afterEvent, AfterVersion: o.afterVersion,
			RowLimit: pageSize, Options: o.inSQL(),
		}
		if o.arrival {
			page.ReadingOrder = "arrival"
		}
		for {
			rows, err := queries.ReadStream(ctx, tx, page)
			if err != nil {
				yield(Record{}, wrap(err, fmt.Sprintf("read stream %q of tree %q", stream, tree)))
				return
			}
			for _, r := range rows {
				if !yield(record(r), nil) {
					return
				}
			}
			if len(rows) < pageSize {
				return
			}
			last := rows[len(rows)-1]
			if o.arrival {
				page.AfterVersion = &last.StreamVersion
			} else {
				page.AfterEventID = &last.EventID
			}
		}
	}
}

func record(r db.RewindRecord) Record {
	rec := Record{
		Tree:          r.TreeName,
		TenantID:      r.TenantID,
		StreamKey:     r.StreamKey,
		StreamID:      r.StreamID,
		Partition:     int(r.WalPartition),
		Offset:        r.WalOffset,
		HLC:           r.Hlc,
		StreamVersion: r.StreamVersion,
		EventID:       r.EventID,
		Kind:          Kind(r.Kind),
		Payload:       r.Payload,
		Metadata:      r.Metadata,
		Delta:         r.Delta,
		EndKey:        r.EndKey,
		OriginCluster: r.OriginCluster,
		OriginHLC:     r.OriginHlc,
		AppendedAt:    r.AppendedAt,
	}
	if r.Mode != nil {
		mode := int(*r.Mode)
		rec.Mode = &mode
	}
	if r.EventType != nil {
		rec.Type = *r.EventType
	}
	return rec
}
