package rewind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind/internal/db"
)

// Cursor is a place in the feed of a tree: for each partition the offset of the next record. It knows which store and which generation of
// the tree it is from, and the clock of the record before each offset, so that going on from it in another history is found out.
// The zero Cursor is the beginning. A Cursor never changes; it marshals to and from JSON, which is also its text.
type Cursor struct {
	epoch      uuid.UUID
	tree       string
	generation int
	offsets    map[int]int64
	after      map[int]int64
}

// Initial is the beginning of every feed.
var Initial Cursor

// Offsets returns the next offset of each partition. A partition that is missing is at its beginning.
func (c Cursor) Offsets() map[int]int64 { return maps.Clone(c.offsets) }

// Tree returns the name of the tree that the cursor is of; the beginning is of any.
func (c Cursor) Tree() string { return c.tree }

// cursorJSON is a cursor as the functions of the database take and return it.
type cursorJSON struct {
	Epoch      *uuid.UUID     `json:"epoch,omitempty"`
	Tree       string         `json:"tree,omitempty"`
	Generation int            `json:"generation,omitempty"`
	Offsets    map[int]int64  `json:"offsets,omitempty"`
	After      map[int]string `json:"after,omitempty"`
}

// MarshalJSON returns the cursor as the functions of the database take it.
func (c Cursor) MarshalJSON() ([]byte, error) {
	out := cursorJSON{Tree: c.tree, Generation: c.generation, Offsets: c.offsets}
	if c.epoch != uuid.Nil {
		out.Epoch = &c.epoch
	}
	if len(c.after) > 0 {
		out.After = make(map[int]string, len(c.after))
		for partition, hlc := range c.after {
			out.After[partition] = strconv.FormatInt(hlc, 10)
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON or a function of the database returned; null is the beginning.
func (c *Cursor) UnmarshalJSON(text []byte) error {
	var in cursorJSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return fmt.Errorf("rewind: feed cursor: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("rewind: feed cursor: something follows it")
	}
	read := Cursor{tree: in.Tree, generation: in.Generation, offsets: in.Offsets}
	if in.Epoch != nil {
		read.epoch = *in.Epoch
	}
	if len(in.After) > 0 {
		read.after = make(map[int]int64, len(in.After))
		for partition, hlc := range in.After {
			var err error
			if read.after[partition], err = strconv.ParseInt(hlc, 10, 64); err != nil {
				return fmt.Errorf("rewind: feed cursor: clock of partition %d: %w", partition, err)
			}
		}
	}
	*c = read
	return nil
}

// MarshalText returns the cursor as JSON.
func (c Cursor) MarshalText() ([]byte, error) { return c.MarshalJSON() }

// UnmarshalText reads a cursor from JSON.
func (c *Cursor) UnmarshalText(text []byte) error { return c.UnmarshalJSON(text) }

// String returns the cursor as JSON.
func (c Cursor) String() string {
	text, err := c.MarshalJSON()
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(text)
}

// CurrentCursor returns the end of a tree's feed: read from it, the feed has exactly what is committed after the call.
func CurrentCursor(ctx context.Context, tx DBTX, tree string) (Cursor, error) {
	text, err := queries.CurrentFeedCursor(ctx, tx, tree)
	return feedCursor(text, err, fmt.Sprintf("read the end of the feed of tree %q", tree))
}

// OldestCursor returns the beginning of what the feed of a tree still has: of one that was trimmed, the beginning is gone.
func OldestCursor(ctx context.Context, tx DBTX, tree string) (Cursor, error) {
	text, err := queries.OldestFeedCursor(ctx, tx, tree)
	return feedCursor(text, err, fmt.Sprintf("read the oldest place in the feed of tree %q", tree))
}

// CursorAt returns the place in the feed of a tree before the records that were appended at or after a time.
func CursorAt(ctx context.Context, tx DBTX, tree string, at time.Time) (Cursor, error) {
	text, err := queries.FeedCursorAt(ctx, tx, db.FeedCursorAtParams{Tree: tree, AtTime: &at})
	return feedCursor(text, err, fmt.Sprintf("find a time in the feed of tree %q", tree))
}

// CursorAtHLC returns the place in the feed of a tree before the records whose clock is at or above a value.
func CursorAtHLC(ctx context.Context, tx DBTX, tree string, hlc int64) (Cursor, error) {
	text, err := queries.FeedCursorAt(ctx, tx, db.FeedCursorAtParams{Tree: tree, AtHlc: &hlc})
	return feedCursor(text, err, fmt.Sprintf("find a clock in the feed of tree %q", tree))
}

func feedCursor(text json.RawMessage, err error, doing string) (c Cursor, _ error) {
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, wrap(err, doing)
}
