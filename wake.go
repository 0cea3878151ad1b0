package rewind

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// wakeInterval is how often appends to a pool wake workers at most. One that was woken looks for work more often for a while.
	wakeInterval = 10 * time.Millisecond
	// wakeErrorInterval is for how long it is left alone when it fails, as for a role that may not.
	wakeErrorInterval = time.Minute
)

// Wake tells workers that wait that there is something to read in a tree; without it they see it when they look next, within 2.5 s by
// default. Call it after the commit of a transaction that appended, never in it. [Append] and [AppendBatch] on a pool do so themselves.
func Wake(ctx context.Context, tx DBTX, tree string) error {
	_, err := queries.Wake(ctx, tx, tree)
	return wrap(err, fmt.Sprintf("wake the workers of tree %q", tree))
}

type wakeKey struct {
	pool weak.Pointer[pgxpool.Pool]
	tree string
}

// nextWakes holds for each pool and tree when workers may be woken again, in Unix nanoseconds.
var nextWakes sync.Map

// wakeAfter wakes workers after an append that was a transaction of its own. That what was appended is read a little later if this
// fails, is no failure of the append.
func wakeAfter(ctx context.Context, tx DBTX, tree string) {
	pool, ok := tx.(*pgxpool.Pool)
	if !ok {
		return
	}
	value, _ := nextWakes.LoadOrStore(wakeKey{weak.Make(pool), tree}, new(atomic.Int64))
	next := value.(*atomic.Int64)
	now := time.Now().UnixNano()
	if at := next.Load(); now < at || !next.CompareAndSwap(at, now+int64(wakeInterval)) {
		return
	}
	if Wake(ctx, tx, tree) != nil {
		next.Store(now + int64(wakeErrorInterval))
	}
}
