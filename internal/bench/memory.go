package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/rewindpg/rewind"
)

const (
	heapInterval = time.Millisecond
	megabyte     = 1 << 20
)

// memory measures the heap of this process while it replays a long stream in Go, and while it reads a long feed.
func memory(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newLog(ctx, logShape{events: e.scale.longStream, perStream: e.scale.longStream})
	if err != nil {
		return nil, err
	}
	// All late events are rewinds, and nothing waits for any.
	p, err := e.newGoPerspective(ctx, tree, `{"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1}`)
	if err != nil {
		return nil, err
	}
	e.doing("folding")
	if _, err := e.runToEnd(ctx, p.name, true, tree); err != nil {
		return nil, err
	}
	rounds := e.scale.longRounds
	replay, replayIdle, feed, feedIdle := make(series, rounds), make(series, rounds), make(series, rounds), make(series, rounds)
	for i := range rounds {
		e.doing(fmt.Sprintf("round %d of %d", i+1, rounds))
		before := e.scale.longStream + i + 1
		if err := e.exec(ctx, `select bench.append_to_stream($1, $2, array[bench.event_id(0, $3)])`, tree, loneStream, i); err != nil {
			return nil, err
		}
		replay[i], replayIdle[i], err = peakHeap(func() error {
			_, err := e.runToEnd(ctx, p.name, true, tree)
			return err
		})
		if err != nil {
			return nil, err
		}
		var replayed int
		err := e.pool.QueryRow(ctx, `select events_replayed from rewind.perspective_rewinds order by rewind_id desc limit 1`).Scan(&replayed)
		if err != nil {
			return nil, err
		}
		if replayed != before {
			return nil, fmt.Errorf("%d events replayed, not %d", replayed, before)
		}
		feed[i], feedIdle[i], err = peakHeap(func() error {
			for _, err := range rewind.Subscribe(ctx, e.pool, tree, rewind.Initial) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return []Result{
		beside("memory_replay", "MB of heap", "idle", replay, replayIdle),
		beside("memory_feed", "MB of heap", "idle", feed, feedIdle),
	}, p.drop(ctx, e)
}

// peakHeap returns the most memory that the heap had while something was done, and what it had before, in MB. Garbage that isn't collected
// yet counts.
func peakHeap(do func() error) (peak, before float64, err error) {
	debug.FreeOSMemory()
	before = heap()
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		ticker := time.NewTicker(heapInterval)
		defer ticker.Stop()
		for {
			peak = max(peak, heap())
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	err = do()
	close(done)
	sampling.Wait()
	return peak, before, err
}

// heap is the memory of the heap's spans in use, in MB.
func heap() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64()+samples[1].Value.Uint64()) / megabyte
}
