package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	stormLimit = 1000 // records that are folded at once: the default of apply_perspective_batch
	// stormFold is how long a rewind takes for each event that it folds, by the storm's clock.
	stormFold = time.Millisecond
	// maxSettling is how often a storm that has ended may be looked at again, 10 s apart, until it owes nothing.
	maxSettling = 1000
)

// storm counts what is folded when the events of one stream arrive in random order, in batches. Time is the database's, which is stopped
// and advanced, so that a minute takes no minute.
func storm(ctx context.Context, e *env) ([]Result, error) {
	err := e.exec(ctx, `
		create table bench.clock as select timestamptz '2026-01-01' as now;
		create or replace function rewind._now() returns timestamptz
		  language sql volatile parallel safe security invoker as 'select now from bench.clock'`)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, kind := range []struct {
		name    string
		apart   time.Duration
		options string
	}{
		{"storm_0s", 0, `{}`},
		{"storm_1s", time.Second, `{}`},
		{"storm_6s", 6 * time.Second, `{"defer_ratio": 0.25, "max_staleness": "20m"}`},
	} {
		folded, events := make(series, e.scale.longRounds), make(series, e.scale.longRounds)
		for i := range folded {
			e.doing(fmt.Sprintf("%s, round %d of %d", kind.name, i+1, len(folded)))
			if folded[i], err = e.stormOnce(ctx, kind.apart, kind.options, uint64(i)); err != nil {
				return nil, err
			}
			events[i] = float64(e.scale.stormEvents)
		}
		results = append(results, beside(kind.name, "events folded", "events", folded, events))
	}
	return results, nil
}

// stormOnce returns how many events are folded until nothing is owed.
func (e *env) stormOnce(ctx context.Context, apart time.Duration, options string, seed uint64) (float64, error) {
	tree := e.fresh("storm")
	if err := e.exec(ctx, `select rewind.create_tree($1, 1)`, tree); err != nil {
		return 0, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.count_and_sum_up", options)
	if err != nil {
		return 0, err
	}
	conn, err := e.session(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	before, err := e.folds(ctx)
	if err != nil {
		return 0, err
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(e.scale.stormEvents)
	batches := e.scale.stormBatches
	for batch := range batches {
		from, to := batch*len(order)/batches, (batch+1)*len(order)/batches
		err := e.exec(ctx, `
			select bench.append_to_stream($1, $2,
			  array(select bench.event_id(n) from unnest($3::int[]) with ordinality u(n, place) order by place))`,
			tree, loneStream, order[from:to])
		if err != nil {
			return 0, err
		}
		if apart > 0 {
			if err := e.serve(ctx, conn, p); err != nil {
				return 0, err
			}
			if err := e.advance(ctx, apart); err != nil {
				return 0, err
			}
		}
	}
	for range maxSettling {
		if err := e.serve(ctx, conn, p); err != nil {
			return 0, err
		}
		var settled bool
		err := e.pool.QueryRow(ctx, `select bool_and(status = 2) from rewind.perspective_cursors where generation_id = $1`,
			p.generationID).Scan(&settled)
		if err != nil {
			return 0, err
		}
		if settled {
			after, err := e.folds(ctx)
			if err != nil {
				return 0, err
			}
			return float64(after - before), p.drop(ctx, e)
		}
		if err := e.advance(ctx, 10*time.Second); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("the storm over %s has not settled", p.name)
}

func (e *env) advance(ctx context.Context, by time.Duration) error {
	return e.exec(ctx, `update bench.clock set now = now + $1`, by)
}

// serve does what is due now: batches, then rewinds.
func (e *env) serve(ctx context.Context, conn *pgx.Conn, p perspective) error {
	if _, err := applyOn(ctx, conn, p, stormLimit); err != nil {
		return err
	}
	for {
		var id *int
		if err := conn.QueryRow(ctx, `select bench.claim_rewind()`).Scan(&id); err != nil || id == nil {
			return err
		}
		for phase := ""; phase != "done"; {
			var folded int64
			var streamID uuid.UUID
			err := conn.QueryRow(ctx, `
				update bench.repairs set state = rewind._repair_step(state) where id = $1
				returning (state).phase, coalesce((state).events_folded, 0), (state).stream_id`, *id).Scan(&phase, &folded, &streamID)
			if err != nil {
				return err
			}
			switch phase {
			case "complete":
				if err := e.advance(ctx, time.Duration(folded)*stormFold); err != nil {
					return err
				}
			case "failed", "lost":
				return fmt.Errorf("the rewind of stream %s is %s", streamID, phase)
			}
		}
	}
}
