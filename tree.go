package rewind

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rewindpg/rewind/internal/db"
)

// DefaultPartitions is the number of partitions of a tree for which nothing else is asked.
const DefaultPartitions = 64

// CreateTree creates a tree whose log has this many partitions. A tree that exists just so is left as it is; one with another number of
// partitions is [ErrDefinitionConflict].
func CreateTree(ctx context.Context, tx DBTX, name string, partitions int) error {
	_, err := queries.CreateTree(ctx, tx, db.CreateTreeParams{
		Name: name, Partitions: int32(partitions), Options: json.RawMessage(`{}`),
	})
	return wrap(err, fmt.Sprintf("create tree %q", name))
}
