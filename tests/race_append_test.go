package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
)

// permutations calls f with every order of 0 … n-1.
func permutations(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var step func(k int)
	step = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			step(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	step(0)
}

// Sessions that append to one partition come one after another, in whatever order they arrive, and whichever of them roll back.
func TestRaceAppendOnePartition(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 3; n++ {
		for rollbacks := range 1 << n {
			t.Run(fmt.Sprintf("%d sessions, rollbacks %b", n, rollbacks), func(t *testing.T) {
				t.Parallel()
				pool := newLog(t, 1)
				round := 0
				permutations(n, func(order []int) {
					round++
					txs := make([]pgx.Tx, n)
					for i := range txs {
						txs[i] = begin(t, pool, pgx.TxOptions{})
					}
					done := make([]chan error, n)
					for k, i := range order {
						done[i] = make(chan error, 1)
						go func() {
							_, err := txs[i].Exec(context.Background(),
								`select rewind.append_events('t', 's' || ($1::int % 2)::text, jsonb_build_array(jsonb_build_object('type', $2::text)))`,
								i, fmt.Sprintf("round %d session %d", round, i))
							done[i] <- err
						}()
						if k > 0 {
							waitUntilBlocked(t, pool, txs[i].Conn().PgConn().PID())
						} else {
							done[i] <- <-done[i]
						}
					}
					for _, i := range order {
						if err := <-done[i]; err != nil {
							t.Fatal(err)
						}
						if rollbacks>>i&1 == 0 {
							commit(t, txs[i])
						} else if err := txs[i].Rollback(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					want := []string{}
					for _, i := range order {
						if rollbacks>>i&1 == 0 {
							want = append(want, fmt.Sprintf("round %d session %d", round, i))
						}
					}
					got := texts(t, pool, fmt.Sprintf(`select event_type from rewind.wal where event_type like 'round %d %%' order by wal_offset`, round))
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("round %d: the log has %q, want %q", round, got, want)
					}
				})
				wantDense(t, pool)
			})
		}
	}
}

// A reader that goes by offsets misses nothing: an append in another partition doesn't wait for an open one, and what becomes visible in a
// partition is what its offsets say.
func TestRaceAppendTwoPartitions(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 2)
	zero, one := streamIn(t, pool, 0), streamIn(t, pool, 1)
	open := begin(t, pool, pgx.TxOptions{})
	appendJSON(t, open, zero, `[{"type":"a"}]`)
	appendJSON(t, pool, one, `[{"type":"b"}]`)
	if next := queryOne[int64](t, pool, `select next_offset from rewind.partitions where tree_name = 't' and wal_partition = 0`); next != 0 {
		t.Errorf("the open append shows: next offset %d", next)
	}
	commit(t, open)
	if next := queryOne[int64](t, pool, `select sum(next_offset)::bigint from rewind.partitions where tree_name = 't'`); next != 2 {
		t.Errorf("next offsets sum up to %d, want 2", next)
	}
}

// 500 rolled-back appends leave no hole and hold nothing back.
func TestRaceAppendRollbacks(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	for i := range 500 {
		tx := begin(t, pool, pgx.TxOptions{})
		appendJSON(t, tx, "s", `[{"type":"a"}]`)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			appendJSON(t, pool, "s", `[{"type":"b"}]`)
		}
	}
	wantDense(t, pool)
	if n := queryOne[int64](t, pool, `select next_offset from rewind.partitions where tree_name = 't'`); n != 5 {
		t.Errorf("next offset %d, want 5", n)
	}
	if n := queryOne[int64](t, pool, `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// Many sessions append in all ways, a fifth of the transactions roll back, ids come up again: every committed event is there once.
func TestRaceAppendStorm(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 5)
	const sessions, rounds = 32, 40
	known := make([]uuid.UUID, 500)
	for i := range known {
		known[i] = at(i)
	}
	var mu sync.Mutex
	committed := map[uuid.UUID]bool{}
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(s), 1))
			for range rounds {
				events := make([]rewind.StreamEvent, 1+random.IntN(4))
				for i := range events {
					k := random.IntN(len(known))
					events[i].Stream, events[i].Type = fmt.Sprint("s", k%20), "a"
					if random.IntN(2) == 0 {
						events[i].ID = known[k]
					}
				}
				roll := random.IntN(5) == 0
				ids, err := appendInTurn(t.Context(), pool, events, random.IntN(2) == 0, roll)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, id := range ids {
					if !roll {
						committed[id] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wantDense(t, pool)
	if n, want := queryOne[int64](t, pool, `select count(*) from rewind.wal`), int64(len(committed)); n != want {
		t.Errorf("%d records, want %d", n, want)
	}
	for _, id := range texts(t, pool, `select event_id::text from rewind.wal`) {
		if !committed[uuid.MustParse(id)] {
			t.Errorf("%s was never committed", id)
		}
	}
}

// appendInTurn appends events in a transaction, as a batch or one by one. If that is refused it tries again, and locks first as the hint says.
func appendInTurn(ctx context.Context, pool *pgxpool.Pool, events []rewind.StreamEvent, asBatch, roll bool) (ids []uuid.UUID, err error) {
	var streams []string
	for _, e := range events {
		streams = append(streams, e.Stream)
	}
	for attempt := 1; ; attempt++ {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		ids, err := func() (ids []uuid.UUID, err error) {
			if asBatch {
				places, err := rewind.AppendBatch(ctx, tx, "t", events)
				for _, p := range places {
					ids = append(ids, p.EventID)
				}
				return ids, err
			}
			if attempt > 1 {
				if err := rewind.LockStreams(ctx, tx, "t", streams); err != nil {
					return nil, err
				}
			}
			for _, e := range events {
				places, err := rewind.Append(ctx, tx, "t", e.Stream, []rewind.NewEvent{e.NewEvent})
				if err != nil {
					return nil, err
				}
				ids = append(ids, places[0].EventID)
			}
			return ids, nil
		}()
		if err == nil && !roll {
			err = tx.Commit(ctx)
		} else if e := tx.Rollback(ctx); err == nil {
			err = e
		}
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code == "40001" && attempt == 1 {
			continue
		}
		return ids, err
	}
}

// Sets of streams in opposite orders, in one call, in one transaction after lock_streams, and one after another: nobody ever sees a
// deadlock, and only those who append one after another are asked to retry.
func TestRaceAppendOppositeOrders(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 4)
	streams := make([]string, 4)
	for i := range streams {
		streams[i] = streamIn(t, pool, i)
	}
	const sessions, iterations = 8, 10_000
	deadline := time.Now().Add(2 * time.Minute)
	var left, retries atomic.Int64
	left.Store(iterations)
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(s), 2))
			for left.Add(-1) >= 0 && time.Now().Before(deadline) && !t.Failed() {
				order := random.Perm(4)[:2+random.IntN(3)]
				way := random.IntN(3)
				// Statements of one message are one transaction.
				var keys, statements []string
				for _, i := range order {
					keys = append(keys, "'"+streams[i]+"'")
					statements = append(statements, `select rewind.append_events('t', '`+streams[i]+`', '[{"type":"a"}]')`)
				}
				list := "array[" + strings.Join(keys, ", ") + "]"
				switch way {
				case 0:
					statements = []string{`select rewind.append_batch('t', s, array_fill(null::uuid, d), array_fill('a'::text, d), array_fill(null::jsonb, d))
						from (select s, array[cardinality(s)] as d from (values (` + list + `)) v(s)) q`}
				case 1:
					statements = slices.Insert(statements, 0, `select rewind.lock_streams('t', `+list+`)`)
				}
				_, err := pool.Exec(t.Context(), strings.Join(statements, "; "), pgx.QueryExecModeSimpleProtocol)
				var pgErr *pgconn.PgError
				if errors.As(err, &pgErr) && pgErr.Code == "40001" && way == 2 {
					retries.Add(1)
				} else if err != nil {
					t.Errorf("way %d: %v", way, err)
				}
			}
		})
	}
	wg.Wait()
	if left.Load() > 0 {
		t.Errorf("%d iterations are left after two minutes", left.Load())
	}
	t.Logf("%d retries", retries.Load())
	if retries.Load() == 0 {
		t.Error("nobody was ever asked to retry: the orders did not meet")
	}
	wantDense(t, pool)
}
