package rewind

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/rewindpg/rewind/internal/db"
)

// DefaultPartitions is the number of partitions of a tree for which nothing else is asked.
const DefaultPartitions = 64

// CreateTree creates a tree whose log has this many partitions. A tree that exists just so is left as it is; one with another number of
// partitions is [ErrDefinitionConflict].
func CreateTree(ctx context.Context, tx DBTX, name string, partitions int) error {
	_, err := queries.CreateTree(ctx, tx, db.CreateTreeParams{
		Name: name, Partitions: asInt32(partitions), Options: json.RawMessage(`{}`),
	})
	return wrap(err, fmt.Sprintf("create tree %q", name))
}

// asInt32 is a number for the database to judge, which refuses the largest as it does larger ones.
func asInt32(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// RepartitionTree moves a tree on to another number of partitions. Readers of its feed, with whatever cursor, and perspectives finish what is in
// the partitions of before, and go on in the new ones. Appends wait for it, for less than a second if tx is a pool; it fails with SQLSTATE 55P03
// if a transaction that has appended stays open for half a minute.
func RepartitionTree(ctx context.Context, tx DBTX, name string, partitions int) error {
	_, err := queries.RepartitionTree(ctx, tx, db.RepartitionTreeParams{Tree: name, Partitions: asInt32(partitions)})
	return wrap(err, fmt.Sprintf("repartition tree %q", name))
}

// RepointTree moves a tree on to the log of another one that is empty: the tree goes on with the partitions and options of that one, which is no
// tree of its own any more. Otherwise it is as [RepartitionTree].
func RepointTree(ctx context.Context, tx DBTX, name, to string) error {
	_, err := queries.RepointTree(ctx, tx, db.RepointTreeParams{Tree: name, ToTree: to})
	return wrap(err, fmt.Sprintf("repoint tree %q", name))
}
