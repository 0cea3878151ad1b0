package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	liveLimit = 5000 // records of a batch: a worker's default
	longEach  = 100  // events of a stream
	shortEach = 5
)

const aggregateText = "bare aggregate"

func liveSQL(ctx context.Context, e *env) ([]Result, error) {
	return liveColdAndAnalysed(ctx, e, "live_sql", logShape{events: e.scale.events, perStream: longEach})
}

func liveSQLShort(ctx context.Context, e *env) ([]Result, error) {
	return liveColdAndAnalysed(ctx, e, "live_sql_short", logShape{events: e.scale.events, perStream: shortEach})
}

// liveColdAndAnalysed measures the live path of a SQL perspective from an empty model on, in one session, on a log that was never analysed
// and then on one that was vacuumed and analysed.
func liveColdAndAnalysed(ctx context.Context, e *env, name string, shape logShape) ([]Result, error) {
	const autovacuum = `alter table rewind.wal set (autovacuum_enabled = %[1]s); alter table rewind.streams set (autovacuum_enabled = %[1]s)`
	if err := e.exec(ctx, fmt.Sprintf(autovacuum, "off")); err != nil {
		return nil, err
	}
	tree, err := e.filled(ctx, shape)
	if err != nil {
		return nil, err
	}
	cold, err := e.compareLive(ctx, name+"_cold", tree, shape.events)
	if err != nil {
		return nil, err
	}
	e.doing("analysing")
	for _, statement := range []string{fmt.Sprintf(autovacuum, "on"), `vacuum analyze rewind.wal`, `vacuum analyze rewind.streams`} {
		if err := e.exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	analysed, err := e.compareLive(ctx, name, tree, shape.events)
	return []Result{analysed, cold}, err
}

// compareLive compares the live path with the bare aggregate over the same events.
func (e *env) compareLive(ctx context.Context, name, tree string, events int) (Result, error) {
	fold, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return Result{}, err
	}
	values, baselines, err := e.compare(ctx, e.scale.longRounds, e.liveRate(tree, events), e.aggregateRate(tree, fold, events))
	if err != nil {
		return Result{}, err
	}
	return beside(name, "events/s", aggregateText, values, baselines), fold.drop(ctx, e)
}

// liveRate measures the live path over a log, from empty models on.
func (e *env) liveRate(tree string, events int) measurement {
	return func(ctx context.Context) (float64, error) {
		p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
		if err != nil {
			return 0, err
		}
		took, err := e.applyAll(ctx, p)
		if err != nil {
			return 0, err
		}
		return float64(events) / took.Seconds(), p.drop(ctx, e)
	}
}

// liveGo compares workers that fold in Go and in SQL, both one batch at a time.
func liveGo(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.filled(ctx, logShape{events: e.scale.events, perStream: longEach})
	if err != nil {
		return nil, err
	}
	run := func(newPerspective func(ctx context.Context) (perspective, error), inGo bool) measurement {
		return func(ctx context.Context) (float64, error) {
			p, err := newPerspective(ctx)
			if err != nil {
				return 0, err
			}
			took, err := e.runToEnd(ctx, p.name, inGo, tree)
			if err != nil {
				return 0, err
			}
			return float64(e.scale.events) / took.Seconds(), p.drop(ctx, e)
		}
	}
	values, baselines, err := e.compare(ctx, e.scale.longRounds,
		run(func(ctx context.Context) (perspective, error) { return e.newGoPerspective(ctx, tree, "{}") }, true),
		run(func(ctx context.Context) (perspective, error) {
			return e.newPerspective(ctx, tree, "bench.sum_up", "{}")
		}, false))
	if err != nil {
		return nil, err
	}
	return []Result{beside("live_go", "events/s", "the same in SQL", values, baselines)}, nil
}

// verify compares the verification of a perspective with the bare aggregate over its events.
func verify(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.filled(ctx, logShape{events: e.scale.events, perStream: longEach})
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
	values, baselines, err := e.compare(ctx, e.scale.longRounds,
		func(ctx context.Context) (float64, error) {
			begin := time.Now()
			var problems int
			err := e.pool.QueryRow(ctx, `select count(*) from rewind.verify_perspective($1)`, p.name).Scan(&problems)
			if err == nil && problems > 0 {
				err = fmt.Errorf("%d problems found", problems)
			}
			return float64(e.scale.events) / time.Since(begin).Seconds(), err
		},
		e.aggregateRate(tree, p, e.scale.events))
	if err != nil {
		return nil, err
	}
	return []Result{beside("verify", "events/s", aggregateText, values, baselines)}, p.drop(ctx, e)
}

// perspective is one in SQL, or in Go with the fold of sumUp.
type perspective struct {
	name         string
	generationID int
}

// newPerspective makes one that folds what is in its tree already in order of arrival, as if it had been there first, and builds nothing.
func (e *env) newPerspective(ctx context.Context, tree, apply, options string) (perspective, error) {
	return e.create(ctx, `
		select (rewind.create_perspective($1, $2, ($4 || '(jsonb, rewind.event)')::regprocedure, p_options => $3)).active_generation`,
		tree, options, apply)
}

func (e *env) newGoPerspective(ctx context.Context, tree, options string) (perspective, error) {
	return e.create(ctx, `select active_generation from rewind.register_perspective($1, $2, p_options => $3)`, tree, options)
}

func (e *env) create(ctx context.Context, statement string, args ...any) (perspective, error) {
	p := perspective{name: e.fresh("perspective")}
	if err := e.pool.QueryRow(ctx, statement, append([]any{p.name}, args...)...).Scan(&p.generationID); err != nil {
		return p, err
	}
	return p, e.exec(ctx, `update rewind.perspective_partitions set cut_offset = 0 where generation_id = $1`, p.generationID)
}

func (p perspective) drop(ctx context.Context, e *env) error {
	return e.exec(ctx, `select rewind.drop_perspective($1)`, p.name)
}

// applyAll runs the live path of a perspective to the end of the log, in a new session and in batches as a worker's, and returns how long
// that took.
func (e *env) applyAll(ctx context.Context, p perspective) (time.Duration, error) {
	conn, err := e.session(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return applyOn(ctx, conn, p, liveLimit)
}

func applyOn(ctx context.Context, conn *pgx.Conn, p perspective, limit int) (time.Duration, error) {
	rows, err := conn.Query(ctx, `
		select wal_partition from rewind.perspective_partitions where generation_id = $1 order by wal_partition`, p.generationID)
	if err != nil {
		return 0, err
	}
	partitions, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, partition := range partitions {
		for next, head := int64(0), int64(1); next < head; {
			err := conn.QueryRow(ctx, `select next_offset, head_offset from rewind.apply_perspective_batch($1, $2, $3)`,
				p.name, partition, limit).Scan(&next, &head)
			if err != nil {
				return 0, fmt.Errorf("apply a batch: %w", err)
			}
		}
	}
	return time.Since(begin), nil
}

// aggregateRate measures the fold of a perspective as a bare aggregate over a tree's events: on one core, as the live path of a session has,
// and without streams' names, which this fold doesn't look at.
func (e *env) aggregateRate(tree string, p perspective, events int) measurement {
	return func(ctx context.Context) (float64, error) {
		conn, err := e.session(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if _, err := conn.Exec(ctx, `set max_parallel_workers_per_gather = 0; set jit = off`); err != nil {
			return 0, err
		}
		begin := time.Now()
		var streams, models int
		err = conn.QueryRow(ctx, fmt.Sprintf(`
			select count(*), count(model)
			from (
			  select w.stream_id,
			    rewind_gen.fold_%d(false, null, w.stream_id, '', '', w.event_id, w.event_type, w.payload, w.metadata order by w.event_id) as model
			  from rewind.wal w
			  where w.tree_id = (select tree_id from rewind.trees where tree_name = $1) and w.kind = 6
			  group by w.stream_id
			) f`, p.generationID), tree).Scan(&streams, &models)
		if err == nil && streams != models {
			err = fmt.Errorf("%d models of %d streams", models, streams)
		}
		return float64(events) / time.Since(begin).Seconds(), err
	}
}
