package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

const (
	watchedStreams = 100
	settleTimeout  = time.Minute

	latencyRate     = 200 // appends per second
	latencyInterval = 2 * time.Millisecond

	lateRate     = 5000 // events per second
	lateStreams  = 1000
	lateShare    = 0.2
	lateMost     = 3 * time.Second
	lateTick     = 20 * time.Millisecond
	lateInterval = 10 * time.Millisecond // between looks

	// idleAfter is how long a worker has nothing to do until it looks for work as seldom as it ever does.
	idleAfter = 6 * time.Second
	// idleSpan is the least time in which it must look.
	idleSpan = 3 * time.Second
)

// lensWatch finds out when events can be seen in a lens: a reader asks it again and again for the streams with events that it hasn't seen,
// and an event is seen when the answer has come that has it. So a figure is too high by up to the pause between two questions, and never
// too low.
type lensWatch struct {
	lens     string
	interval time.Duration
	streams  map[string]uuid.UUID
	from     time.Time // what was appended before is for warming up

	mu        sync.Mutex
	pending   map[uuid.UUID][]committed
	latencies series // milliseconds
}

// committed is an event whose append was answered at a time.
type committed struct {
	version int64 // of its stream
	at      time.Time
}

// watch returns a watch of some streams of a tree.
func (e *env) watch(ctx context.Context, p perspective, tree string, interval time.Duration) (*lensWatch, error) {
	w := &lensWatch{
		lens: pgx.Identifier{"lens", p.name}.Sanitize(), interval: interval,
		streams: map[string]uuid.UUID{}, pending: map[uuid.UUID][]committed{},
	}
	for i := range watchedStreams {
		key := streamKey(i)
		var id uuid.UUID
		if err := e.pool.QueryRow(ctx, `select rewind.stream_id($1, $2)`, tree, key).Scan(&id); err != nil {
			return nil, err
		}
		w.streams[key] = id
	}
	return w, nil
}

func streamKey(i int) string { return fmt.Sprintf("stream-%d", i) }

// appended notes an event that was committed just now, if its stream is watched.
func (w *lensWatch) appended(stream string, a rewind.Appended, at time.Time) {
	id, watched := w.streams[stream]
	if !watched || at.Before(w.from) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[id] = append(w.pending[id], committed{a.StreamVersion, at})
}

// run looks until the appends have ended and everything was seen.
func (w *lensWatch) run(ctx context.Context, e *env, ended <-chan struct{}) error {
	conn, err := e.session(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	var deadline <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("events can't be seen in the lens after %v", settleTimeout)
		case <-ended:
			deadline, ended = time.After(settleTimeout), nil
		case <-ticker.C:
		}
		waiting := w.waiting()
		if len(waiting) == 0 {
			if ended == nil {
				return nil
			}
			continue
		}
		if err := w.look(ctx, conn, waiting); err != nil {
			return err
		}
	}
}

func (w *lensWatch) waiting() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []uuid.UUID
	for id, events := range w.pending {
		if len(events) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// look reads the lens. Its events_applied is how far the stream is in the model, in order of arrival, since all events match.
func (w *lensWatch) look(ctx context.Context, conn *pgx.Conn, ids []uuid.UUID) error {
	rows, err := conn.Query(ctx, `select stream_id, events_applied from `+w.lens+` where stream_id = any ($1)`, ids)
	if err != nil {
		return err
	}
	type model struct {
		StreamID uuid.UUID
		Applied  int64
	}
	models, err := pgx.CollectRows(rows, pgx.RowToStructByPos[model])
	if err != nil {
		return err
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range models {
		left := w.pending[m.StreamID][:0]
		for _, event := range w.pending[m.StreamID] {
			if event.version > m.Applied {
				left = append(left, event)
				continue
			}
			w.latencies = append(w.latencies, max(0, milliseconds(now.Sub(event.at))))
		}
		w.pending[m.StreamID] = left
	}
	return nil
}

// observe lets a worker with defaults fold what a producer appends, and watches the lens until all of it was seen. It begins to watch when
// their sessions are warm: that dozens of them are opened at once is nobody's daily business.
func (e *env) observe(ctx context.Context, p perspective, w *lensWatch, produce func(ctx context.Context) error) error {
	stop, err := e.startWorker(ctx, p.name)
	if err != nil {
		return err
	}
	w.from = time.Now().Add(2 * e.scale.span)
	group, groupCtx := errgroup.WithContext(ctx)
	ended := make(chan struct{})
	group.Go(func() error { return w.run(groupCtx, e, ended) })
	group.Go(func() error {
		defer close(ended)
		return produce(groupCtx)
	})
	return errors.Join(group.Wait(), stop())
}

// latency measures from an append's answer to its being seen in the lens, in the slow trickle of most systems.
func latency(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return nil, err
	}
	p50, p99 := make(series, e.scale.longRounds), make(series, e.scale.longRounds)
	for i := range p50 {
		e.doing(fmt.Sprintf("round %d of %d", i+1, len(p50)))
		w, err := e.watch(ctx, p, tree, latencyInterval)
		if err != nil {
			return nil, err
		}
		if err := e.observe(ctx, p, w, func(ctx context.Context) error { return e.appendSlowly(ctx, tree, w) }); err != nil {
			return nil, err
		}
		p50[i], p99[i] = w.latencies.median(), w.latencies.quantile(0.99)
	}
	return []Result{alone("latency_p50", "ms", p50), alone("latency_p99", "ms", p99)}, nil
}

// appendSlowly appends one event at a time. One that takes long delays no other.
func (e *env) appendSlowly(ctx context.Context, tree string, w *lensWatch) error {
	event := []rewind.NewEvent{{Type: "placed", Payload: json.RawMessage(eventPayload)}}
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for n := 0; time.Since(begin) < e.scale.longSpan && ctx.Err() == nil; n++ {
		time.Sleep(time.Until(begin.Add(time.Duration(n) * time.Second / latencyRate)))
		group.Go(func() error {
			stream := streamKey(rand.IntN(watchedStreams))
			appended, err := rewind.Append(ctx, e.pool, tree, stream, event)
			if err == nil {
				w.appended(stream, appended[0], time.Now())
			}
			return err
		})
	}
	return group.Wait()
}

// late20 offers many events, a fifth of them late.
func late20(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.count_and_sum_up", "{}")
	if err != nil {
		return nil, err
	}
	rounds := e.scale.longRounds
	folded, events := make(series, rounds), make(series, rounds)
	rates, offered := make(series, rounds), make(series, rounds)
	p99 := make(series, rounds)
	for i := range rounds {
		e.doing(fmt.Sprintf("round %d of %d", i+1, rounds))
		w, err := e.watch(ctx, p, tree, lateInterval)
		if err != nil {
			return nil, err
		}
		before, err := e.folds(ctx)
		if err != nil {
			return nil, err
		}
		err = e.observe(ctx, p, w, func(ctx context.Context) (err error) {
			begin := time.Now()
			events[i], err = e.appendLate(ctx, tree, w)
			rates[i] = events[i] / time.Since(begin).Seconds()
			return err
		})
		if err != nil {
			return nil, err
		}
		after, err := e.folds(ctx)
		if err != nil {
			return nil, err
		}
		folded[i], p99[i], offered[i] = float64(after-before), w.latencies.quantile(0.99), lateRate
	}
	return []Result{
		beside("late_20", "events folded", "events", folded, events),
		alone("late_20_p99", "ms", p99),
		beside("late_20_rate", "events/s", "events/s offered", rates, offered),
	}, nil
}

// appendLate appends what is due, every lateTick. What couldn't be appended in time comes later.
func (e *env) appendLate(ctx context.Context, tree string, w *lensWatch) (events float64, err error) {
	begin := time.Now()
	sent := 0
	for ctx.Err() == nil {
		elapsed := min(time.Since(begin), e.scale.longSpan)
		due := int(elapsed.Seconds() * lateRate)
		if due == sent && elapsed == e.scale.longSpan {
			break
		}
		batch := make([]rewind.StreamEvent, min(due-sent, batchEvents))
		for i := range batch {
			happened := time.Now()
			if rand.Float64() < lateShare {
				happened = happened.Add(-rand.N(lateMost))
			}
			batch[i] = rewind.StreamEvent{Stream: streamKey(rand.IntN(lateStreams)), NewEvent: rewind.NewEvent{
				ID: eventID(happened), Type: "placed", Payload: json.RawMessage(eventPayload),
			}}
		}
		appended, err := rewind.AppendBatch(ctx, e.pool, tree, batch)
		if err != nil {
			return 0, err
		}
		at := time.Now()
		for i, a := range appended {
			w.appended(batch[i].Stream, a, at)
		}
		sent += len(batch)
		if sent >= due {
			time.Sleep(lateTick)
		}
	}
	return float64(sent), ctx.Err()
}

// eventID is an id as it is made where something happens.
func eventID(happened time.Time) uuid.UUID {
	id := uuid.New() // version 4, random
	micros := happened.UnixMicro()
	ticks := micros/1000<<12 | micros%1000*4096/1000
	for i := range 6 {
		id[i] = byte(ticks >> (52 - 8*i))
	}
	id[6], id[7] = 0x70|byte(ticks>>8&0x0f), byte(ticks)
	return id
}

// idle counts the statements of a worker that has nothing to do.
func idle(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return nil, err
	}
	var counter statementCounter
	w, pool, err := e.newWorker(ctx, []string{p.name}, worker.Config{}, counter.attach)
	if err != nil {
		return nil, err
	}
	stop := runWorker(ctx, w, pool)
	e.doing("waiting for a worker to be idle")
	counts := make(series, e.scale.longRounds)
	err = pause(ctx, idleAfter)
	for i := 0; err == nil && i < len(counts); i++ {
		e.doing(fmt.Sprintf("round %d of %d", i+1, len(counts)))
		before, span := counter.n.Load(), max(idleSpan, e.scale.longSpan)
		err = pause(ctx, span)
		counts[i] = float64(counter.n.Load()-before) / span.Minutes()
	}
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return []Result{alone("idle", "statements/min", counts)}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// statementCounter counts the statements that a pool sends, with its pings.
type statementCounter struct{ n atomic.Int64 }

func (c *statementCounter) attach(config *pgxpool.Config) {
	config.ConnConfig.Tracer = c
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		ping := p.IdleDuration > time.Second // pgxpool's own rule
		if ping {
			c.n.Add(1)
		}
		return ping
	}
}

func (c *statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *statementCounter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (c *statementCounter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	c.n.Add(1)
}

func (c *statementCounter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
