package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/semaphore"

	"github.com/rewindpg/rewind/internal/db"
	"github.com/rewindpg/rewind/migrate"
)

const (
	heartbeatInterval = 10 * time.Second
	// pruneInterval is how often a worker does housekeeping; sooner, if the last call deleted pruneLimit rows.
	pruneInterval = 5 * time.Minute
	pruneLimit    = 1000
	// stopGrace is how long a statement may go on after the worker was asked to stop.
	stopGrace = 5 * time.Second
	// maxFailures in a row of a poll or of a partition's batches end a run that isn't to last.
	maxFailures = 10
	// busyPollInterval is when a worker looks for more that has enough to do: whose batches are all busy, or that builds a generation.
	busyPollInterval = 50 * time.Millisecond
	// idlePollInterval is the longest pause between polls of a worker that ends when it is idle.
	idlePollInterval = 100 * time.Millisecond
)

// partition of a generation.
type partition struct {
	generationID int32
	walPartition int32
}

// failure of a partition's last batches. Somewhere before the end is what they fail by, so that batches up to there are smaller with
// every attempt.
type failure struct {
	attempts int
	until    time.Time // of the next attempt
	end      int64     // offset
}

// runner is one run of a worker. Its loop alone touches its state: what takes time runs in goroutines, which hand a function back that
// the loop runs when they have ended.
type runner struct {
	*Worker
	untilIdle bool
	stopping  <-chan struct{}
	versions  json.RawMessage // of the Go perspectives by name
	options   atomic.Pointer[options]
	pruneAt   time.Time

	settled  chan func()
	inFlight int
	err      error // that ends the run

	timer    *time.Timer
	nextPoll time.Time
	delay    time.Duration
	failures int // of polls in a row

	folding   *semaphore.Weighted // each fold in Go takes one of foldingAlone; one that may end the process takes all
	outlived  sync.Map            // partitions whose first batches in Go ended neither themselves nor this process
	foldsInGo sync.Map            // by generation id, whether it folds in Go: versions of a perspective may differ in that

	listening atomic.Bool
	waiting   bool // to be woken

	queue    []db.RewindWork // partitions to read, oldest first
	builds   []db.RewindWork // partitions that are built yet; they leave the others a place
	building int
	finished []db.RewindWork // rebuilds that may be ready to end
	ending   map[int64]bool  // rebuilds
	batches  int             // being applied
	busy     map[partition]bool
	failing  map[partition]failure
	due      bool // a rewind
	claiming bool
	rewinds  int            // being replayed
	deferred map[int64]bool // tokens of foreign locks that were logged
	scan     *startupScan   // while it blocks
}

func (w *Worker) run(ctx context.Context, untilIdle bool) error {
	if err := w.start(); err != nil {
		return err
	}
	defer w.stop()
	err := w.runUntil(ctx, untilIdle)
	if ctx.Err() != nil && !untilIdle {
		return nil
	}
	return err
}

func (w *Worker) runUntil(ctx context.Context, untilIdle bool) error {
	if err := migrate.Check(ctx, w.pool); err != nil {
		return err
	}
	versions, err := w.registerPerspectives(ctx)
	if err != nil {
		return err
	}
	if missing, err := w.query.UnfoldablePerspective(ctx, w.pool, db.UnfoldablePerspectiveParams{
		Perspectives: w.config.Perspectives, GoPerspectives: versions,
	}); err != nil {
		return fmt.Errorf("look for the perspectives: %w", err)
	} else if missing != "" {
		return fmt.Errorf("perspective %q can't be folded here: there is none of this name, or it is folded in Go and not registered", missing)
	}
	r := &runner{
		versions:  versions,
		Worker:    w,
		untilIdle: untilIdle,
		stopping:  ctx.Done(),
		settled:   make(chan func()),
		delay:     w.config.PollInterval,
		folding:   semaphore.NewWeighted(foldingAlone),
		busy:      map[partition]bool{},
		failing:   map[partition]failure{},
		deferred:  map[int64]bool{},
		ending:    map[int64]bool{},
	}
	// Statements outlive the wish to stop for a while, so that what is nearly done is done.
	graceful, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })()

	if err := r.announce(graceful); err != nil {
		return err
	}
	observing, err := r.observe()
	if err != nil {
		return fmt.Errorf("observe the lag: %w", err)
	}
	r.scanAtStart(graceful)
	defer r.ready.Store(false)
	beside, endBeside := context.WithCancel(graceful)
	var running sync.WaitGroup
	running.Go(func() { r.beat(beside) })
	if !untilIdle && !w.config.NoListening {
		running.Go(func() { r.listen(beside) })
	}
	err = r.loop(graceful)
	endBeside()
	running.Wait()
	if unregisterErr := observing.Unregister(); unregisterErr != nil {
		w.log.Warn("the lag is still observed", slog.Any("error", unregisterErr))
	}
	if forgetErr := w.query.ForgetWorker(graceful, w.pool, w.config.Name); forgetErr != nil {
		w.log.Warn("this worker stays listed until it counts as dead", slog.Any("error", forgetErr))
	}
	if err == nil && untilIdle {
		err = ctx.Err()
	}
	return err
}

// goFold returns the fold of a generation that is folded in Go.
func (r *runner) goFold(ctx context.Context, name string, generationID int32) (perspective goPerspective, inGo bool, err error) {
	perspective, registered := r.perspectives[name]
	if !registered {
		return perspective, false, nil
	}
	if known, ok := r.foldsInGo.Load(generationID); ok {
		return perspective, known.(bool), nil
	}
	if inGo, err = r.query.FoldsInGo(ctx, r.pool, generationID); err == nil {
		r.foldsInGo.Store(generationID, inGo)
	}
	return perspective, inGo, err
}

// registerPerspectives makes sure that the perspectives that fold in Go are in the database; it returns their versions by name.
func (w *Worker) registerPerspectives(ctx context.Context) (json.RawMessage, error) {
	versions := map[string]int{}
	for name, p := range w.perspectives {
		if w.config.Perspectives != nil && !slices.Contains(w.config.Perspectives, name) {
			continue
		}
		err := w.query.RegisterPerspective(ctx, inTransaction(w.pool), db.RegisterPerspectiveParams{
			Name: name, Tree: p.tree, EventTypes: p.eventTypes, Version: int32(p.version), Options: p.options,
		})
		if err != nil {
			return nil, fmt.Errorf("register perspective %q: %w", name, err)
		}
		versions[name] = p.version
	}
	return json.Marshal(versions)
}

// announce lists this worker.
func (r *runner) announce(ctx context.Context) error {
	if err := r.heartbeat(ctx); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	r.prune(ctx)
	r.log.Info("worker started", slog.String("worker", r.config.Name))
	return nil
}

func (r *runner) heartbeat(ctx context.Context) error {
	text, err := r.query.Heartbeat(ctx, r.pool, db.HeartbeatParams{
		Worker: r.config.Name, Version: moduleVersion(), GoPerspectives: r.versions,
	})
	if err != nil {
		return err
	}
	o, err := parseOptions[options](text)
	if err != nil {
		return err
	}
	r.options.Store(&o)
	o.LogLevel.apply(r.log, r.perspectiveLog, r.scanLog)
	return nil
}

// prune does a piece of the housekeeping that all workers share.
func (r *runner) prune(ctx context.Context) {
	deleted, err := r.query.PruneHistory(ctx, r.pool, pruneLimit)
	if err != nil && ctx.Err() == nil {
		r.log.Warn("housekeeping failed", slog.Any("error", err))
	}
	r.pruneAt = time.Now()
	if deleted < pruneLimit {
		r.pruneAt = r.pruneAt.Add(jitter(pruneInterval))
	}
}

func (r *runner) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := r.heartbeat(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("heartbeat failed", slog.Any("error", err))
			}
			if time.Now().After(r.pruneAt) {
				r.prune(ctx)
			}
		}
	}
}

// loop starts what there is to do until the worker is to stop, is idle (if it runs until then) or can't go on; then it waits for what is
// under way.
func (r *runner) loop(ctx context.Context) error {
	r.timer = time.NewTimer(0)
	defer r.timer.Stop()
	idle := false
	for r.err == nil && !idle && !r.stopped() {
		select {
		case <-r.stopping:
		case settle := <-r.settled:
			r.settle(settle)
		case <-r.wake:
			r.waiting, r.delay = false, r.config.PollInterval
			r.pollWithin(0)
		case <-r.timer.C:
			idle = r.poll(ctx)
		}
		if !r.stopped() {
			r.startBatches(ctx)
			r.startRewinds(ctx)
			r.endRebuilds(ctx)
		}
	}
	for r.inFlight > 0 {
		r.settle(<-r.settled)
	}
	return r.err
}

// stopped tells whether the worker was asked to stop, or can't go on.
func (r *runner) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// spawn runs a task beside the loop. The function that it returns is run by the loop.
func (r *runner) spawn(task func() (settle func())) {
	r.inFlight++
	go func() { r.settled <- task() }()
}

func (r *runner) settle(settle func()) {
	r.inFlight--
	settle()
}

// poll looks for work; it returns whether this run is done. The pause until the next poll doubles, until something was done.
func (r *runner) poll(ctx context.Context) (idle bool) {
	defer func() {
		now := time.Now()
		r.lastPoll.Store(&now)
	}()
	longest := r.config.MaxPollInterval
	if r.untilIdle || r.rebuilding {
		longest = min(longest, max(idlePollInterval, r.config.PollInterval))
	}
	r.delay = min(2*r.delay, longest)
	if r.scan != nil {
		r.pollScan(ctx)
		return false
	}
	work, err := r.query.FindWork(ctx, r.pool, db.FindWorkParams{Perspectives: r.config.Perspectives, GoPerspectives: r.versions})
	if err == nil && r.untilIdle && len(work) == 0 && r.inFlight == 0 {
		idle, err = r.isIdle(ctx)
	}
	if err != nil {
		r.pollFailed(ctx, err)
		return false
	}
	r.failures = 0
	r.take(work)
	switch {
	case len(work) > 0:
		r.awake(ctx)
		if r.isFull() {
			r.schedule(max(jitter(r.delay), busyPollInterval))
		} else {
			r.schedule(jitter(r.delay))
		}
	case r.wait(ctx):
		r.schedule(0)
	default:
		r.schedule(jitter(r.delay))
	}
	return idle
}

// isFull tells whether what was found keeps every batch busy, so that another poll could only find repairs.
func (r *runner) isFull() bool {
	return r.batches+len(r.queue)+min(len(r.builds), r.maxBuilding()-r.building) >= r.config.Concurrency
}

// take sorts what a poll found.
func (r *runner) take(work []db.RewindWork) {
	r.queue, r.builds, r.finished = r.queue[:0], r.builds[:0], r.finished[:0]
	r.due = false
	deferred := map[int64]bool{}
	for _, item := range work {
		switch {
		case item.HeldBy != nil:
			deferred[*item.HeldToken] = true
			r.logDeferred(item)
		case item.StreamID != nil:
			r.due = true
		case item.RebuildID != nil:
			r.finished = append(r.finished, item)
		case r.busy[partitionOf(item)] || time.Now().Before(r.failing[partitionOf(item)].until):
		case item.IsBuild:
			r.builds = append(r.builds, item)
		default:
			r.queue = append(r.queue, item)
		}
	}
	r.deferred = deferred
}

func partitionOf(item db.RewindWork) partition {
	return partition{item.GenerationID, *item.WalPartition}
}

// logDeferred says once for each lock that a repair waits for it.
func (r *runner) logDeferred(item db.RewindWork) {
	if r.deferred[*item.HeldToken] {
		return
	}
	r.perspectiveLog.Warn("stream lock not acquired, deferring", logID(logLockNotAcquired),
		streamAttrs(item.PerspectiveName, *item.StreamID, *item.StreamKey), slog.String("held_by", *item.HeldBy))
}

func (r *runner) isIdle(ctx context.Context) (bool, error) {
	debts, err := r.query.CountDebts(ctx, r.pool, db.CountDebtsParams{Perspectives: r.config.Perspectives, GoPerspectives: r.versions})
	if err != nil || debts.Owed > 0 {
		return false, err
	}
	if debts.Failed+debts.Parked > 0 {
		r.err = &FailedStreamsError{Failed: debts.Failed, Parked: debts.Parked}
	}
	return true, nil
}

func (r *runner) pollFailed(ctx context.Context, err error) {
	r.failures++
	r.schedule(backoff(r.failures, retryDelayMin, retryDelayMax))
	r.log.Warn("looking for work failed, trying again", slog.Any("error", err), slog.Int("attempt", r.failures))
	r.endIfHopeless(ctx, err, r.failures)
}

// endIfHopeless ends the run if the schema has changed under it, or if an error lasts and the run is one until idle.
func (r *runner) endIfHopeless(ctx context.Context, err error, attempts int) {
	if code := sqlState(err); code != "" && code[:2] == "42" {
		schemaErr := migrate.Check(ctx, r.pool)
		if errors.Is(schemaErr, migrate.ErrSchemaMissing) || errors.Is(schemaErr, migrate.ErrSchemaOlder) || errors.Is(schemaErr, migrate.ErrSchemaNewer) {
			r.err = schemaErr
			return
		}
	}
	if r.untilIdle && attempts >= maxFailures {
		r.err = err
	}
}

func (r *runner) schedule(d time.Duration) {
	r.nextPoll = time.Now().Add(d)
	r.timer.Reset(d)
}

func (r *runner) pollWithin(d time.Duration) {
	if time.Now().Add(d).Before(r.nextPoll) {
		r.schedule(d)
	}
}

// progressed says that something was done, so that there may be more.
func (r *runner) progressed(more bool) {
	r.delay = r.config.PollInterval
	switch {
	case len(r.queue) > 0: // which is done first
	case len(r.builds) > 0: // which are known; only what is new is looked for
		r.pollWithin(max(r.delay, busyPollInterval))
	case more:
		r.pollWithin(0)
	default:
		r.pollWithin(r.delay)
	}
}

// startBatches starts what was found. Building a generation leaves a place for what is new.
func (r *runner) startBatches(ctx context.Context) {
	for len(r.queue) > 0 && r.batches < r.config.Concurrency {
		item := r.queue[0]
		r.queue = r.queue[1:]
		r.startBatch(ctx, item)
	}
	for len(r.builds) > 0 && r.batches < r.config.Concurrency && r.building < r.maxBuilding() {
		item := r.builds[0]
		r.builds = r.builds[1:]
		r.startBatch(ctx, item)
	}
}

func (r *runner) maxBuilding() int {
	if r.rebuilding {
		return r.config.Concurrency
	}
	return max(1, r.config.Concurrency-1)
}

func (r *runner) startBatch(ctx context.Context, item db.RewindWork) {
	at := partitionOf(item)
	limit, attempts := r.batchLimit(item), r.failing[at].attempts+1
	r.batches++
	if item.IsBuild {
		r.building++
	}
	r.busy[at] = true
	r.spawn(func() func() {
		began := time.Now()
		result, err := r.applyBatch(ctx, item, limit)
		if limit == 1 && (isOfItsFold(err) || attempts >= maxAttempts && mayBeOfItsFold(err)) {
			result.Failed, err = r.failRecord(ctx, item, err, false)
		}
		return func() {
			r.batches--
			if item.IsBuild {
				r.building--
			}
			delete(r.busy, at)
			if err != nil {
				r.batchFailed(ctx, item, limit, err)
				return
			}
			r.logNarrated(item, result.Narrated, time.Since(began))
			r.batchApplied(ctx, item, result)
		}
	})
}

// batchLimit is how many records the next batch of a partition may have.
func (r *runner) batchLimit(item db.RewindWork) int {
	suspects := r.failing[partitionOf(item)].end - *item.NextOffset
	if suspects <= 0 {
		return r.config.BatchSize
	}
	return int(max(1, suspects/8))
}

func (r *runner) batchApplied(ctx context.Context, item db.RewindWork, result db.RewindAppliedBatch) {
	at := partitionOf(item)
	if f, ok := r.failing[at]; ok && result.NextOffset < f.end {
		r.failing[at] = failure{end: f.end}
	} else {
		delete(r.failing, at)
	}
	r.telemetry.countBatch(ctx, item.PerspectiveName, result)
	if result.RecordsRead > 0 || result.Failed > 0 {
		r.progressed(result.NextOffset < result.HeadOffset)
	}
}

// batchFailed puts a partition back for a while and makes its batches smaller, unless it wasn't the batch that failed.
func (r *runner) batchFailed(ctx context.Context, item db.RewindWork, limit int, err error) {
	if errors.Is(err, pgx.ErrNoRows) || isOutOfReach(err) || errors.Is(err, errStopped) {
		return // another worker has it, it was paused or dropped
	}
	at := partitionOf(item)
	f := r.failing[at]
	f.attempts++
	if !isUnreachable(err) && (!isConflict(err) || f.attempts >= maxAttempts) {
		f.end = *item.NextOffset + int64(limit)
	}
	wait := backoff(f.attempts, retryDelayMin, retryDelayMax)
	f.until = time.Now().Add(wait)
	r.failing[at] = f
	r.pollWithin(wait)
	level := slog.LevelError
	if isTransient(err) {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "batch failed, trying again", slog.String("perspective_name", item.PerspectiveName),
		slog.Int("wal_partition", int(at.walPartition)), slog.Any("error", err), slog.Int("attempt", f.attempts))
	r.endIfHopeless(ctx, err, f.attempts)
}

// isOutOfReach tells whether a perspective or generation was paused or dropped meanwhile.
func isOutOfReach(err error) bool {
	switch sqlState(err) {
	case "RW006", "RW014", "RW018":
		return true
	}
	return false
}

func (r *runner) startRewinds(ctx context.Context) {
	free := r.options.Load().MaxConcurrentRewinds - r.rewinds
	if !r.due || r.claiming || free <= 0 {
		return
	}
	r.claiming = true
	scan := r.scan.copy()
	r.spawn(func() func() {
		claimed, err := r.claimRewinds(ctx, free, scan)
		return func() {
			r.claiming = false
			r.due = len(claimed) == free
			if err != nil {
				r.log.Warn("claiming rewinds failed, trying again", slog.Any("error", err))
			}
			for _, c := range claimed {
				r.rewinds++
				r.spawn(func() func() {
					result := r.rewind(ctx, c)
					return func() {
						r.rewinds--
						if result != givenUp {
							r.progressed(true)
						}
						if result == failed && r.scan != nil {
							r.scan.failed = append(r.scan.failed, c.StreamID.String())
						}
					}
				})
			}
		}
	})
}
