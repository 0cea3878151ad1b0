package tests

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/worker"
)

// loseOnce makes the first query of a name fail, in a session that is gone then.
type loseOnce struct {
	name string
	lost atomic.Bool
}

func (l *loseOnce) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "name: "+l.name+" ") && l.lost.CompareAndSwap(false, true) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	return ctx
}

func (l *loseOnce) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A repair that failed before it had begun, as when its session was lost right after the claim, took its worker's process down.
func TestRepairLostAfterItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"retry_backoff": "1ms"}})
	w.append("s", testEvent{at: 20, v: 1}, testEvent{at: 30, v: 2})
	w.apply()
	w.append("s", testEvent{at: 10, v: 3})
	tracer := &loseOnce{name: "ReadClaimed"}
	config := w.pool.Config()
	config.ConnConfig.Tracer = tracer
	settle(t, w, newWorker(t, &world{t: t, pool: openPool(t, config)}, worker.Config{}))
	if !tracer.lost.Load() {
		t.Error("nothing was lost")
	}
	w.checkSettled()
}

func openPool(t *testing.T, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
