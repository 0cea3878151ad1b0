package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/rewindpg/rewind/internal/testdb"
)

// repair is a repair without a worker that is under way: its state lies in a table, so that steps of several interleave.
const repairSQL = `
create table app.repairs (id int generated always as identity, state rewind.repair_state);
create function app.begin_repair() returns void language sql as $$
	insert into app.repairs (state)
	select row(c.generation_id, c.stream_id, c.token, 'begin', null, false, null, null, null, null, 0, 0, 0, null, 0, null, null)::rewind.repair_state
	from rewind._claim_rewinds('tester', 1, null, null, true) c
$$;
create function app.step_repair(p_nth int) returns void language sql as $$
	update app.repairs r set state = rewind._repair_step(r.state) where r.id = (select id from app.repairs order by id offset p_nth limit 1);
	delete from app.repairs where (state).phase in ('done', 'failed', 'lost');
$$`

// checked is a test that fails as one of rapid's checks, so that rapid looks for the least steps that fail it.
type checked struct {
	testing.TB
	check *rapid.T
}

func (c checked) Error(args ...any)                 { c.check.Error(args...) }
func (c checked) Errorf(format string, args ...any) { c.check.Errorf(format, args...) }
func (c checked) Fatal(args ...any)                 { c.check.Fatal(args...) }
func (c checked) Fatalf(format string, args ...any) { c.check.Fatalf(format, args...) }

// Random events in random order, batches of random size, repairs whose steps interleave with them, requests, resets and moves of the tree:
// after every step each model is the fold of its cursor's prefix, in Go.
func TestPropertyEveryStepIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		inline := rapid.SampledFrom([]int{0, 3, 256}).Draw(rt, "inline")
		w := newWorldIn(checked{t, rt}, testdb.New(t), worldOptions{partitions: 2, options: map[string]any{
			"inline_rewind_events": inline, "snapshot_every_n_events": rapid.IntRange(1, 8).Draw(rt, "every"),
			"rewind_snapshot_interval_events": rapid.IntRange(1, 4).Draw(rt, "spacing"),
			"max_snapshots_per_stream":        rapid.IntRange(1, 5).Draw(rt, "cap"),
		}})
		w.exec(repairSQL)
		stream := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("s", rapid.IntRange(0, 2).Draw(rt, "stream")) })
		now := 500
		w.append("s0", testEvent{at: now, v: 1})
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				// Half of them in order: what is newest must not keep everything after it late.
				late := rapid.SampledFrom([]int{0, now}).Draw(rt, "late")
				events := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) testEvent {
					now += rapid.IntRange(1, 20).Draw(rt, "passed")
					return testEvent{at: now - rapid.IntRange(0, late).Draw(rt, "by"), v: rapid.IntRange(1, 30).Draw(rt, "v")}
				}), 1, 6).Draw(rt, "events")
				w.append(stream.Draw(rt, "key"), events...)
			},
			"batch": func(rt *rapid.T) {
				// Of those with something to read, which are few after some moves.
				if unread := w.unread(); len(unread) > 0 {
					w.exec(`select from rewind.apply_perspective_batch('p', $1, $2)`, rapid.SampledFrom(unread).Draw(rt, "partition"),
						rapid.IntRange(1, 12).Draw(rt, "limit"))
				}
			},
			"move": func(rt *rapid.T) {
				// Rarely, so that a partition has many records of a stream.
				if to := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(rt, "to"); to > 0 {
					moveTree(w.t, w.pool, to)
				}
			},
			"begin repair": func(*rapid.T) { w.exec(`select app.begin_repair()`) },
			"step repair":  func(rt *rapid.T) { w.exec(`select app.step_repair($1)`, rapid.IntRange(0, 2).Draw(rt, "nth")) },
			"repair": func(*rapid.T) {
				w.exec(`select app.begin_repair()`)
				for queryOne[bool](w.t, w.pool, `select exists (select from app.repairs)`) {
					w.exec(`select app.step_repair(0)`)
				}
			},
			"request": func(rt *rapid.T) {
				w.execIfThere(`select from rewind.request_perspective_rewind('p', $1)`, stream.Draw(rt, "key"))
			},
			"reset": func(rt *rapid.T) {
				w.execIfThere(`select from rewind.reset_perspective_cursor('p', $1)`, stream.Draw(rt, "key"))
			},
			"": func(*rapid.T) { w.checkSound() },
		})
		w.exec(`update rewind.perspective_stream_locks set expires_at = '-infinity'`)
		w.catchUp()
		w.checkSettled()
		w.pool.Close()
	})
}

// unread returns the partitions that the live path has not read to their ends.
func (w *world) unread() []int {
	w.t.Helper()
	return queryOne[[]int](w.t, w.pool, `
		select coalesce(array_agg(p.wal_partition order by p.wal_partition), '{}')
		from rewind.perspective_partitions p
		where exists (select from rewind.wal w where w.wal_partition = p.wal_partition and w.wal_offset >= p.next_offset)`)
}

// execIfThere is for statements about a stream that may have no cursor yet (RW013).
func (w *world) execIfThere(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(ctxOf(w.t), sql, args...)
	if pgErr, ok := err.(*pgconn.PgError); err != nil && (!ok || pgErr.Code != "RW013") {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// Writers (20 % late, 20 % rolled back), live appliers, repairs and verifiers run against each other: no verifier ever sees anything
// wrong, and in the end every model is the fold of its stream, and the inline and the rewind path, and batches of any size, agree.
func TestPropertyStorm(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]int{"rewind path": 0, "mixed": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{partitions: 4, options: map[string]any{"inline_rewind_events": inline, "snapshot_every_n_events": 20}})
			w.exec(repairSQL)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			// Three seconds, and until it rewound some, which takes longer on a busy machine.
			enough := time.Now().Add(3 * time.Second)
			wg.Go(func() {
				for ctx.Err() == nil {
					if time.Now().After(enough) && queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds`) >= 5 {
						cancel()
					}
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
			run := func(n int, step func(ctx context.Context, conn *pgxpool.Conn, r *rand.Rand) error) {
				for range n {
					wg.Go(func() {
						conn, err := w.pool.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Release()
						r := rand.New(rand.NewPCG(rand.Uint64(), 0))
						for ctx.Err() == nil {
							if err := step(t.Context(), conn, r); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
			}
			begin := time.Now()
			run(4, func(ctx context.Context, conn *pgxpool.Conn, r *rand.Rand) error {
				tx, err := conn.Begin(ctx)
				if err != nil {
					return err
				}
				defer tx.Rollback(ctx)
				events := make([]testEvent, 1+r.IntN(5))
				for i := range events {
					events[i] = testEvent{at: int(time.Since(begin).Milliseconds()), v: r.IntN(100000)}
					if r.IntN(5) == 0 {
						events[i].at -= r.IntN(1000)
					}
				}
				appendEvents(t, tx, fmt.Sprint("s", r.IntN(40)), events...)
				if r.IntN(5) == 0 {
					return tx.Rollback(ctx)
				}
				return tx.Commit(ctx)
			})
			run(3, func(ctx context.Context, conn *pgxpool.Conn, r *rand.Rand) error {
				_, err := conn.Exec(ctx, `select from rewind.apply_perspective_batch('p', $1, $2)`, r.IntN(4), 1+r.IntN(200))
				return err
			})
			run(3, func(ctx context.Context, conn *pgxpool.Conn, r *rand.Rand) error {
				return repairOne(ctx, conn)
			})
			run(1, func(ctx context.Context, conn *pgxpool.Conn, r *rand.Rand) error {
				rows, err := conn.Query(ctx, `select stream_key || ' ' || problem || ' ' || coalesce(expected::text, '') || ' ' || coalesce(actual::text, '') from rewind.verify_perspective('p')`)
				if err != nil {
					return err
				}
				found, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if len(found) > 0 {
					return fmt.Errorf("verify_perspective in the storm: %v", found)
				}
				return err
			})
			wg.Wait()
			if t.Failed() {
				return
			}
			w.checkSound()
			w.catchUp()
			w.checkSettled()

			rewinds := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_rewinds`)
			events := queryOne[int64](t, w.pool, `select count(*) from rewind.wal where kind = 6`)
			t.Logf("%d events, %d rewinds", events, rewinds)
			if rewinds == 0 {
				t.Error("nothing was rewound")
			}
			// Another perspective that folds the same log afterwards, in other batches, shows the same models (I7).
			w.exec(`select from rewind.create_perspective('again', 't', 'app.chain(jsonb, rewind.event)')`)
			w.exec(`call rewind.catch_up('again')`)
			if n := queryOne[int64](t, w.pool, `select count(*) from lens.p a full join lens.again b using (stream_id) where a.model is distinct from b.model`); n > 0 {
				t.Errorf("%d models differ between live and built anew", n)
			}
		})
	}
}

// repairOne claims a due repair and carries it through, each step a transaction of its own.
func repairOne(ctx context.Context, conn *pgxpool.Conn) error {
	var id *int
	err := conn.QueryRow(ctx, `
		with begun as (
			insert into app.repairs (state)
			select row(c.generation_id, c.stream_id, c.token, 'begin', null, false, null, null, null, null, 0, 0, 0, null, 0, null, null)::rewind.repair_state
			from rewind._claim_rewinds('tester', 1, null, null, true) c
			returning id
		)
		select max(id) from begun`).Scan(&id)
	if err != nil || id == nil {
		return err
	}
	for phase := ""; phase != "done" && phase != "lost"; {
		err := conn.QueryRow(ctx, `update app.repairs r set state = rewind._repair_step(r.state) where id = $1 returning (state).phase`, *id).Scan(&phase)
		if err != nil {
			return err
		}
		if phase == "failed" {
			return fmt.Errorf("repair %d failed", *id)
		}
	}
	return nil
}
