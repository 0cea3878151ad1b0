package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/worker"
)

const (
	growthFactor       = 8 // how many times more events
	growthPerspectives = 4
	lateGroup          = 5000 // events between two looks of the live path
	lateSpread         = 15_000
	hotBatch           = 100
)

// growth measures what the speed of the live path depends on.
func growth(ctx context.Context, e *env) ([]Result, error) {
	events := e.scale.events
	var results []Result
	add := func(name, unit, against string, thing, baseline measurement) error {
		values, baselines, err := e.compare(ctx, e.scale.longRounds, thing, baseline)
		if err != nil {
			return err
		}
		results = append(results, beside(name, unit, against, values, baselines))
		return nil
	}
	type comparison struct {
		name, against   string
		shape, baseline logShape
	}
	usual := logShape{events: events, perStream: longEach}
	for _, c := range []comparison{
		{
			"growth_events", fmt.Sprintf("%d times fewer events", growthFactor),
			usual, logShape{events: events / growthFactor, perStream: longEach},
		},
		{
			"growth_streams", fmt.Sprintf("%d events a stream, not %d", longEach, shortEach),
			logShape{events: events, perStream: shortEach}, usual,
		},
		{"growth_partitions_1", "64 partitions, not 1", logShape{events: events, perStream: longEach, partitions: 1}, usual},
		{"growth_partitions_512", "64 partitions, not 512", logShape{events: events, perStream: longEach, partitions: 512}, usual},
	} {
		tree, err := e.filled(ctx, c.shape)
		if err != nil {
			return nil, err
		}
		baseline, err := e.filled(ctx, c.baseline)
		if err != nil {
			return nil, err
		}
		if err := add(c.name, "events/s", c.against, e.liveRate(tree, c.shape.events), e.liveRate(baseline, c.baseline.events)); err != nil {
			return nil, err
		}
	}
	for _, late := range []int{5, 20, 50} {
		err := add(fmt.Sprintf("growth_late_%d", late), "events/s", fmt.Sprintf("none late, not %d %%", late),
			e.lateRate(events/growthFactor, float64(late)/100), e.lateRate(events/growthFactor, 0))
		if err != nil {
			return nil, err
		}
	}
	tree, err := e.filled(ctx, usual)
	if err != nil {
		return nil, err
	}
	err = add("growth_perspectives", "folds/s", fmt.Sprintf("1 perspective, not %d", growthPerspectives),
		e.workerRate(tree, events, growthPerspectives), e.workerRate(tree, events, 1))
	return results, err
}

// workerRate measures what a worker with defaults folds in a second, over so many perspectives.
func (e *env) workerRate(tree string, events, perspectives int) measurement {
	return func(ctx context.Context) (float64, error) {
		names := make([]string, perspectives)
		all := make([]perspective, perspectives)
		for i := range all {
			var err error
			if all[i], err = e.newPerspective(ctx, tree, "bench.sum_up", "{}"); err != nil {
				return 0, err
			}
			names[i] = all[i].name
		}
		w, pool, err := e.newWorker(ctx, names, worker.Config{PollInterval: time.Millisecond, MaxPollInterval: time.Millisecond}, nil)
		if err != nil {
			return 0, err
		}
		defer pool.Close()
		begin := time.Now()
		if err := w.RunUntilIdle(ctx); err != nil {
			return 0, err
		}
		took := time.Since(begin)
		for _, p := range all {
			if err := p.drop(ctx, e); err != nil {
				return 0, err
			}
		}
		return float64(perspectives*events) / took.Seconds(), nil
	}
}

// lateRate measures the live path alone while events come in groups, a share of them late by up to lateSpread events of the whole log.
func (e *env) lateRate(events int, share float64) measurement {
	return func(ctx context.Context) (float64, error) {
		tree, err := e.newTree(ctx)
		if err != nil {
			return 0, err
		}
		p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
		if err != nil {
			return 0, err
		}
		conn, err := e.session(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		var took time.Duration
		for from := 1; from <= events; from += lateGroup {
			err := e.exec(ctx, `select bench.append_late($1, $2, $3, $4, $5, $6)`,
				tree, lateStreams, from, min(from+lateGroup-1, events), share, lateSpread)
			if err != nil {
				return 0, err
			}
			applied, err := applyOn(ctx, conn, p, liveLimit)
			if err != nil {
				return 0, err
			}
			took += applied
		}
		return float64(events) / took.Seconds(), p.drop(ctx, e)
	}
}

// hotStream measures what one stream can take: beside many streams, and with many events in a call beside one.
func hotStream(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	hot := func(events int) func(int) writer {
		return func(int) writer { return &hotWriter{tree: tree, events: events} }
	}
	spread, _, err := e.singleWriters(ctx)
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds, e.throughput(singleClients, hot(1)), e.throughput(singleClients, spread))
	if err != nil {
		return nil, err
	}
	results := []Result{beside("hot_stream", "events/s", "many streams", values, baselines)}
	values, baselines, err = e.compare(ctx, e.scale.rounds, e.throughput(1, hot(hotBatch)), e.throughput(1, hot(1)))
	if err != nil {
		return nil, err
	}
	return append(results, beside("hot_stream_batch", "events/s", fmt.Sprintf("1 event a call, not %d", hotBatch), values, baselines)), nil
}

// hotWriter appends to the one stream of its tree.
type hotWriter struct {
	tree   string
	events int
}

func (w *hotWriter) write(ctx context.Context, conn *pgx.Conn) (int, error) {
	events := "[" + strings.Repeat(eventJSON+",", w.events-1) + eventJSON + "]"
	rows, err := conn.Query(ctx, `select * from rewind.append_events($1, 'hot', $2)`, w.tree, events)
	return drain(rows, err)
}

// disk measures what events, cursors and snapshots take on disk, with their indexes, and what updates of cursors leave behind.
func disk(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newLog(ctx, logShape{events: e.scale.events, perStream: longEach})
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return nil, err
	}
	e.doing("folding")
	if _, err := e.applyAll(ctx, p); err != nil {
		return nil, err
	}
	var results []Result
	for _, what := range []struct{ name, unit, against, query string }{
		{"disk_event", "bytes", "payload and type", `
			select pg_total_relation_size('rewind.wal')::float8 / count(*), avg(pg_column_size(payload) + pg_column_size(event_type))::float8
			from rewind.wal`},
		{"disk_cursor", "bytes", "model", fmt.Sprintf(`
			select pg_total_relation_size('rewind_gen.models_%[1]d')::float8 / count(*), avg(pg_column_size(model))::float8
			from rewind_gen.models_%[1]d`, p.generationID)},
		{"disk_snapshot", "bytes", "model", fmt.Sprintf(`
			select pg_total_relation_size('rewind_gen.snapshots_%[1]d')::float8 / count(*), avg(pg_column_size(model))::float8
			from rewind_gen.snapshots_%[1]d`, p.generationID)},
	} {
		var value, baseline float64
		if err := e.pool.QueryRow(ctx, what.query).Scan(&value, &baseline); err != nil {
			return nil, err
		}
		results = append(results, beside(what.name, what.unit, what.against, series{value}, series{baseline}))
	}
	updates, err := e.updateCursors(ctx)
	return append(results, updates...), err
}

// updateCursors brings each of some streams one event after another, and looks at what so many updates do to the table of cursors.
func (e *env) updateCursors(ctx context.Context) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", `{"snapshots_enabled": false}`)
	if err != nil {
		return nil, err
	}
	conn, err := e.session(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var fresh, after, hot float64
	size := fmt.Sprintf(`select pg_total_relation_size('rewind_gen.models_%d')::float8`, p.generationID)
	for i := range e.scale.updates + 1 {
		e.doing(fmt.Sprintf("update %d of %d", i, e.scale.updates))
		if err := e.exec(ctx, `select bench.append_round($1, $2, $3, $4)`, tree, lateStreams, i*lateStreams+1, (i+1)*lateStreams); err != nil {
			return nil, err
		}
		if _, err := applyOn(ctx, conn, p, liveLimit); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := conn.QueryRow(ctx, size).Scan(&fresh); err != nil {
				return nil, err
			}
		}
	}
	if err := conn.QueryRow(ctx, size).Scan(&after); err != nil {
		return nil, err
	}
	if err := conn.Close(ctx); err != nil { // which hands its statistics in
		return nil, err
	}
	for counted := false; !counted; {
		err := e.pool.QueryRow(ctx, `
			select n_tup_upd > 0, 100 * n_tup_hot_upd::float8 / greatest(n_tup_upd, 1) from pg_stat_all_tables where relid = $1::text::regclass`,
			fmt.Sprintf("rewind_gen.models_%d", p.generationID)).Scan(&counted, &hot)
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return []Result{
		alone("hot_updates", "% of updates of cursors", series{hot}),
		beside("bloat", "bytes", fmt.Sprintf("before %d updates of each cursor", e.scale.updates), series{after}, series{fresh}),
	}, p.drop(ctx, e)
}
