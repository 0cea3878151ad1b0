package rewind

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rewindpg/rewind/internal/db"
)

// Consumer is a durable reader of a feed, claimed by somebody: its cursor is kept in the database, and what it has before it isn't trimmed
// while its lease runs. Read from its Cursor with [Subscribe], and [Consumer.Advance] it in the transaction that writes what was read: then
// each record takes effect exactly once.
type Consumer struct {
	Name string
	Tree string
	// Cursor is where the consumer goes on, as it was when it was claimed.
	Cursor Cursor

	token int64
}

// CreateConsumer creates a consumer that goes on from a cursor, unless it exists: then its cursor stays where it is. Options: [Lease].
func CreateConsumer(ctx context.Context, tx DBTX, name, tree string, from Cursor, opts ...Option) error {
	doing := fmt.Sprintf("create feed consumer %q", name)
	o, err := collect(opts, "Lease")
	if err != nil {
		return err
	}
	text, err := json.Marshal(from)
	if err != nil {
		return wrap(err, doing)
	}
	_, err = queries.CreateFeedConsumer(ctx, tx, db.CreateFeedConsumerParams{Consumer: name, Tree: tree, FromCursor: text, Options: o.leaseInSQL()})
	return wrap(err, doing)
}

// ClaimConsumer claims a consumer, for as long as its lease, which every advance renews. While another owner holds it the error matches
// [ErrLockHeld]; the same owner gets it at once, and its claim of before is lost. A consumer that stayed away for so long that a trim passed
// it is told with an error that matches [ErrCursorTrimmed].
func ClaimConsumer(ctx context.Context, tx DBTX, name, owner string) (Consumer, error) {
	doing := fmt.Sprintf("claim feed consumer %q", name)
	c := Consumer{Name: name}
	var err error
	if c.token, err = queries.ClaimFeedConsumer(ctx, tx, db.ClaimFeedConsumerParams{Consumer: name, Owner: owner}); err != nil {
		return Consumer{}, wrap(err, doing)
	}
	row, err := queries.FeedConsumer(ctx, tx, name)
	if err != nil {
		return Consumer{}, wrap(err, doing)
	}
	c.Tree = row.TreeName
	err = json.Unmarshal(row.Cursor, &c.Cursor)
	return c, wrap(err, doing)
}

// Advance moves the consumer on and renews its lease, when tx commits. If the claim is another's by now, or its lease ended, the error matches
// [ErrLockLost], and tx can only be rolled back.
func (c Consumer) Advance(ctx context.Context, tx DBTX, to Cursor) error {
	doing := fmt.Sprintf("advance feed consumer %q", c.Name)
	text, err := json.Marshal(to)
	if err != nil {
		return wrap(err, doing)
	}
	return wrap(queries.AdvanceFeedConsumer(ctx, tx, db.AdvanceFeedConsumerParams{Consumer: c.Name, Token: c.token, FeedCursor: text}), doing)
}

// DropConsumer drops a consumer and reports whether there was one.
func DropConsumer(ctx context.Context, tx DBTX, name string) (bool, error) {
	dropped, err := queries.DropFeedConsumer(ctx, tx, name)
	return dropped, wrap(err, fmt.Sprintf("drop feed consumer %q", name))
}

// Lease is how long a claim of a consumer holds without an advance; without it, five minutes. [CreateConsumer] takes it.
func Lease(d time.Duration) Option {
	return Option{"Lease", func(o *options) { o.lease = d }}
}

func (o options) leaseInSQL() json.RawMessage {
	if o.lease == 0 {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(fmt.Sprintf(`{"lease": "%d microseconds"}`, o.lease.Microseconds()))
}

// Trimmed is what a trim did.
type Trimmed struct {
	Deleted int64 `json:"records_deleted"`
	// Left are the records below the floor that were not yet looked at.
	Left int64 `json:"records_left"`
	// HeldBy are the consumers that need what was to be trimmed.
	HeldBy []string `json:"held_by"`
	// LeftBehind are the consumers that are told that they lost records, if they return: their lease has ended.
	LeftBehind []string `json:"left_behind"`
}

// TrimTree trims what is before a cursor from a tree that no perspective reads, as far as consumers allow. It deletes some thousands of
// records at a time: call it again, until nothing is left.
func TrimTree(ctx context.Context, tx DBTX, tree string, before Cursor) (Trimmed, error) {
	doing := fmt.Sprintf("trim tree %q", tree)
	text, err := json.Marshal(before)
	if err != nil {
		return Trimmed{}, wrap(err, doing)
	}
	r, err := queries.TrimTree(ctx, tx, db.TrimTreeParams{Tree: tree, Before: text, Options: json.RawMessage(`{}`)})
	return Trimmed{Deleted: r.RecordsDeleted, Left: r.RecordsLeft, HeldBy: r.HeldBy, LeftBehind: r.LeftBehind}, wrap(err, doing)
}
