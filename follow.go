package rewind

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

const (
	minPoll = 10 * time.Millisecond
	maxPoll = time.Second
)

// Follow yields the records of a tree's feed from a cursor on, and goes on with those that are committed later, until the context is
// cancelled or something fails; then it yields the error and ends. It is [Subscribe], again and again: when there is nothing new it waits,
// up to a second ([MaxPoll]) or until it is woken ([WakeOn]). A record's cursor is where another call goes on. Records of a partition come in
// order, and so do those of a stream; what commits late in one partition comes after what was read of others.
// Options: those of Subscribe, [MaxPoll], [WakeOn].
func Follow(ctx context.Context, tx DBTX, tree string, from Cursor, opts ...Option) iter.Seq2[Record, error] {
	o, err := collect(opts, append([]string{"MaxPoll", "WakeOn"}, filterOptions...)...)
	if err != nil {
		return failed(err)
	}
	longest := maxPoll
	if o.maxPoll > 0 {
		longest = o.maxPoll
	}
	return func(yield func(Record, error) bool) {
		at, wait := from, minPoll
		for {
			f, err := capture(ctx, tx, tree, at, o.filter)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if f.unfinished() {
				wait = minPoll
				if !f.read(ctx, tx, yield) {
					return
				}
				at = f.end()
				continue
			}
			// Jitter keeps many followers from asking all at once.
			if err := pause(ctx, wait/2+rand.N(wait/2+1), o.wake); err != nil {
				yield(Record{}, wrap(err, "follow the feed of tree "+tree))
				return
			}
			wait = min(2*wait, longest)
		}
	}
}

// pause waits for a time, or until it is woken; it fails when the context is cancelled.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	case _, open := <-wake:
		if !open { // which says nothing any more
			return pause(ctx, d, nil)
		}
	}
	return nil
}
