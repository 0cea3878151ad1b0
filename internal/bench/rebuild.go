package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/worker"
)

const rebuildConns = 12

// rebuild measures blue-green rebuilds of a SQL perspective, by as many batches at once as a worker has by default and by one, beside a bare
// insert of the same aggregate's results.
func rebuild(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.filled(ctx, logShape{events: e.scale.events, perStream: longEach})
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return nil, err
	}
	// A generation that is behind would be read by the worker that rebuilds, too.
	e.doing("folding")
	if _, err := e.applyAll(ctx, p); err != nil {
		return nil, err
	}
	var results []Result
	for _, r := range []struct {
		name    string
		batches int
	}{{"rebuild", 0}, {"rebuild_one", 1}} {
		values, baselines, err := e.compare(ctx, e.scale.longRounds, e.rebuildRate(p, r.batches), e.insertRate(tree, p))
		if err != nil {
			return nil, err
		}
		results = append(results, beside(r.name, "events/s", "bare insert of the aggregate", values, baselines))
	}
	return results, p.drop(ctx, e)
}

// rebuildRate measures a rebuild from its beginning to its end, with so many batches at once; 0: the default.
func (e *env) rebuildRate(p perspective, batches int) measurement {
	return func(ctx context.Context) (float64, error) {
		w, pool, err := e.newWorker(ctx, []string{p.name}, worker.Config{Concurrency: batches}, func(c *pgxpool.Config) { c.MaxConns = rebuildConns })
		if err != nil {
			return 0, err
		}
		defer pool.Close()
		begin := time.Now()
		result, err := w.Rebuild(ctx, worker.Rebuild{Perspective: p.name})
		took := time.Since(begin)
		if err == nil && (result.State != "completed" || result.Events != int64(e.scale.events)) {
			err = fmt.Errorf("the rebuild is %s with %d events of %d", result.State, result.Events, e.scale.events)
		}
		return float64(e.scale.events) / took.Seconds(), err
	}
}

// insertRate measures what a rebuild can't do without: the fold of all streams, and a table filled with the results.
func (e *env) insertRate(tree string, p perspective) measurement {
	return func(ctx context.Context) (float64, error) {
		conn, err := e.session(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		var fold int
		err = conn.QueryRow(ctx, `select active_generation from rewind.perspectives where perspective_name = $1`, p.name).Scan(&fold)
		if err != nil {
			return 0, err
		}
		if _, err := conn.Exec(ctx, `create table bench.models (stream_id uuid, model jsonb)`); err != nil {
			return 0, err
		}
		begin := time.Now()
		tag, err := conn.Exec(ctx, fmt.Sprintf(`
			insert into bench.models
			select w.stream_id,
			  rewind_gen.fold_%d(false, null, w.stream_id, '', '', w.event_id, w.event_type, w.payload, w.metadata order by w.event_id)
			from rewind.wal w
			where w.tree_id = (select tree_id from rewind.trees where tree_name = $1) and w.kind = 6
			group by w.stream_id`, fold), tree)
		took := time.Since(begin)
		if err != nil {
			return 0, err
		}
		if n := tag.RowsAffected(); n != int64(e.scale.events/longEach) {
			return 0, fmt.Errorf("%d models of %d streams", n, e.scale.events/longEach)
		}
		_, err = conn.Exec(ctx, `drop table bench.models`)
		return float64(e.scale.events) / took.Seconds(), err
	}
}
