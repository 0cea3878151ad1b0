package rewind

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/db"
)

// NewEvent is an event to append.
type NewEvent struct {
	// ID is a UUIDv7 that was made where the thing happened. If it is zero, the database makes one.
	ID uuid.UUID
	// Time is when the thing happened, for events without an ID. The same call again then makes the same ids, and adds nothing. If it is
	// zero too, it happened now.
	Time time.Time
	// Type says what happened. An event must have one.
	Type string
	// Payload and Metadata are marshalled to JSON; nil becomes NULL.
	Payload  any
	Metadata any
}

// StreamEvent is an event to append, and its stream.
type StreamEvent struct {
	Stream string
	NewEvent
}

// Appended says where an event stands in the log. One that went into quarantine stands nowhere.
type Appended struct {
	EventID       uuid.UUID `json:"event_id"`
	Partition     int       `json:"wal_partition"`
	Offset        int64     `json:"wal_offset"`
	StreamVersion int64     `json:"stream_version"`
	HLC           int64     `json:"hlc,string"`
	// WasNew is false if the stream had the event already, or doesn't get it.
	WasNew bool `json:"was_new"`
}

// Quarantined reports whether the event is not in the log, because it is too far in the future or too old for its tree, and the option
// skew_policy says to put such events aside.
func (a Appended) Quarantined() bool { return a.StreamVersion == 0 }

// Append appends events to a stream, all or none, and returns their places in the order given. An event whose ID the stream already has
// comes back with its first place. Options: [ExpectedVersion], [Tenant].
func Append(ctx context.Context, tx DBTX, tree, stream string, events []NewEvent, opts ...Option) ([]Appended, error) {
	doing := fmt.Sprintf("append to stream %q of tree %q", stream, tree)
	o, err := collect(opts, "ExpectedVersion", "Tenant")
	if err != nil {
		return nil, err
	}
	if err := checkNames("tree or stream", tree, stream); err != nil {
		return nil, wrap(err, doing)
	}
	encoded, err := encode(events)
	if err != nil {
		return nil, wrap(err, doing)
	}
	text, err := json.Marshal(encoded)
	if err != nil {
		return nil, wrap(err, doing)
	}
	rows, err := queries.AppendEvents(ctx, tx, db.AppendEventsParams{
		Tree: tree, Stream: stream, Events: text, ExpectedVersion: o.expectedVersion, Options: o.inSQL(),
	})
	if err != nil {
		return nil, wrap(asMalformed(err), doing)
	}
	wakeAfter(ctx, tx, tree)
	return appended(rows), nil
}

// AppendBatch appends events to many streams, all or none, and returns their places in the order given. The partitions of all streams are
// locked first, in ascending order. Options: [Tenant].
func AppendBatch(ctx context.Context, tx DBTX, tree string, events []StreamEvent, opts ...Option) ([]Appended, error) {
	doing := fmt.Sprintf("append a batch to tree %q", tree)
	o, err := collect(opts, "Tenant")
	if err != nil {
		return nil, err
	}
	plain := make([]NewEvent, len(events))
	names := []string{tree}
	for i, e := range events {
		plain[i] = e.NewEvent
		names = append(names, e.Stream)
	}
	if err := checkNames("tree or stream", names...); err != nil {
		return nil, wrap(err, doing)
	}
	encoded, err := encode(plain)
	if err != nil {
		return nil, wrap(err, doing)
	}
	batch := db.AppendBatchParams{
		Tree:     tree,
		Streams:  make([]string, len(events)),
		EventIds: make([]string, len(events)),
		Types:    make([]string, len(events)),
		Payloads: make([]string, len(events)),
		Metadata: make([]string, len(events)),
		Options:  o.inSQL(),
	}
	for i, e := range events {
		batch.Streams[i], batch.Types[i] = e.Stream, e.Type
		batch.Payloads[i], batch.Metadata[i] = string(encoded[i].Payload), string(encoded[i].Metadata)
		if e.ID != uuid.Nil {
			batch.EventIds[i] = e.ID.String()
		}
	}
	if err := fillIDs(ctx, tx, batch, encoded); err != nil {
		return nil, wrap(asMalformed(err), doing)
	}
	rows, err := queries.AppendBatch(ctx, tx, batch)
	if err != nil {
		return nil, wrap(asMalformed(err), doing)
	}
	wakeAfter(ctx, tx, tree)
	return appended(rows), nil
}

// LockStreams locks the partitions of streams until the transaction ends, in an order in which nobody deadlocks. It is the first statement
// of a transaction that appends more than once. Options: [Tenant].
func LockStreams(ctx context.Context, tx pgx.Tx, tree string, streams []string, opts ...Option) error {
	o, err := collect(opts, "Tenant")
	if err != nil {
		return err
	}
	err = queries.LockStreams(ctx, tx, db.LockStreamsParams{Tree: tree, Streams: streams, Options: o.inSQL()})
	return wrap(err, fmt.Sprintf("lock streams of tree %q", tree))
}

// encodedEvent is an event as the database takes it.
type encodedEvent struct {
	ID       *uuid.UUID      `json:"event_id,omitempty"`
	Time     *time.Time      `json:"time,omitempty"`
	Type     *string         `json:"type,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

const reasonNoText = "not UTF-8, or with a NUL in it"

// isText tells whether PostgreSQL can store a text. Others would be altered on their way, and two of them might become one.
func isText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// checkNames refuses names that are no text.
func checkNames(kind string, names ...string) error {
	for _, name := range names {
		if !isText(name) {
			return &Error{Code: "22021", Message: fmt.Sprintf("%s %q is %s", kind, name, reasonNoText)}
		}
	}
	return nil
}

// nulEscape finds the one thing that JSON can say and PostgreSQL can't store.
var nulEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\u0000`)

func encode(events []NewEvent) ([]encodedEvent, error) {
	encoded := make([]encodedEvent, len(events))
	var malformed []EventError
	for i, e := range events {
		if e.ID != uuid.Nil {
			encoded[i].ID = &e.ID
		}
		if !e.Time.IsZero() {
			happened := toMicroseconds(e.Time.UTC())
			encoded[i].Time = &happened
			switch {
			case e.ID != uuid.Nil:
				malformed = append(malformed, EventError{Index: i, Field: "time", Reason: "event_id has a time already"})
			case happened.Before(time.Unix(0, 0)) || happened.Year() > 9999:
				malformed = append(malformed, EventError{Index: i, Field: "time", Reason: "not between 1970 and 9999"})
			}
		}
		if !isText(e.Type) {
			malformed = append(malformed, EventError{Index: i, Field: "type", Reason: reasonNoText})
		}
		if e.Type != "" {
			encoded[i].Type = &e.Type
		}
		for _, part := range []struct {
			field string
			value any
			text  *json.RawMessage
		}{{"payload", e.Payload, &encoded[i].Payload}, {"metadata", e.Metadata, &encoded[i].Metadata}} {
			text, err := json.Marshal(part.value)
			if err != nil {
				return nil, fmt.Errorf("marshal %s of event %d: %w", part.field, i, err)
			}
			if nulEscape.Match(text) {
				malformed = append(malformed, EventError{Index: i, Field: part.field, Reason: "PostgreSQL can't store \\u0000"})
			}
			if string(text) != "null" {
				*part.text = text
			}
		}
	}
	if malformed != nil {
		return nil, malformedError(malformed)
	}
	return encoded, nil
}

// toMicroseconds rounds a time as the database rounds its text, so that what is one time there is one here.
func toMicroseconds(t time.Time) time.Time {
	fraction := math.RoundToEven(float64(t.Nanosecond()) / 1e9 * 1e6)
	return t.Truncate(time.Second).Add(time.Duration(fraction) * time.Microsecond)
}

// fillIDs gives those events of a batch that come with a time the ids that follow from it.
func fillIDs(ctx context.Context, tx DBTX, batch db.AppendBatchParams, encoded []encodedEvent) error {
	type place struct {
		stream string
		time   time.Time
	}
	ranks := map[place]int32{}
	timed := db.EventIDsParams{Tree: batch.Tree, Options: batch.Options}
	var indexes []int
	for i, e := range encoded {
		if e.Time == nil || e.ID != nil {
			continue
		}
		at := place{batch.Streams[i], *e.Time}
		timed.Times = append(timed.Times, e.Time.Format(time.RFC3339Nano))
		timed.Ranks = append(timed.Ranks, ranks[at])
		timed.Streams = append(timed.Streams, batch.Streams[i])
		timed.Types = append(timed.Types, batch.Types[i])
		timed.Payloads = append(timed.Payloads, batch.Payloads[i])
		timed.Metadata = append(timed.Metadata, batch.Metadata[i])
		ranks[at]++
		indexes = append(indexes, i)
	}
	if indexes == nil {
		return nil
	}
	ids, err := queries.EventIDs(ctx, tx, timed)
	for n, id := range ids {
		batch.EventIds[indexes[n]] = id.String()
	}
	return err
}

func appended(rows []db.RewindAppended) []Appended {
	places := make([]Appended, len(rows))
	for i, r := range rows {
		places[i] = Appended{EventID: r.EventID, WasNew: r.WasNew}
		if r.StreamVersion != nil {
			places[i].Partition = int(*r.WalPartition)
			places[i].Offset = *r.WalOffset
			places[i].StreamVersion = *r.StreamVersion
			places[i].HLC = *r.Hlc
		}
	}
	return places
}
