package tests

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/worker"
)

// newHistory is a world whose clock stands still, with rewinds, workers and stream locks that are an hour and a half, ten days and forty
// days old.
func newHistory(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{})
	testdb.SetClock(t, w.pool, time.UnixMilli(1_700_000_000_000))
	w.exec(`create view app.ages as select n, rewind._now() - age as since from unnest('{90m,10d,40d}'::interval[]) with ordinality a(age, n)`)
	w.exec(`
		insert into rewind.perspective_rewinds (perspective_name, generation_id, stream_id, stream_key, replay_source, events_replayed, events_folded,
		  events_behind, started_at, completed_at, outcome)
		select 'p', 1, gen_random_uuid(), n, 'full', 1, 1, 1, since, since, 'completed' from app.ages order by since`)
	w.exec(`insert into rewind.workers (worker_id, started_at, heartbeat_at, version) select n, since, since, '' from app.ages`)
	w.exec(`insert into rewind.workers (worker_id, started_at, heartbeat_at, version) values ('live', rewind._now(), rewind._now() - interval '59m', '')`)
	w.exec(`
		insert into rewind.perspective_stream_locks (generation_id, stream_id, owner, reason, token, acquired_at, expires_at)
		select 1, gen_random_uuid(), n, 'rewind', n, since, since from app.ages`)
	w.exec(`
		insert into rewind.perspective_stream_locks (generation_id, stream_id, owner, reason, token, acquired_at, expires_at)
		values (1, gen_random_uuid(), 'late', 'rewind', 9, rewind._now(), rewind._now() - interval '59m')`)
	return w
}

// left are the numbers of rewinds, workers and stream locks.
func (w *world) left() [3]int64 {
	w.t.Helper()
	var n [3]int64
	for i, table := range []string{"perspective_rewinds", "workers", "perspective_stream_locks"} {
		n[i] = queryOne[int64](w.t, w.pool, `select count(*) from rewind.`+table)
	}
	return n
}

func TestPruneHistory(t *testing.T) {
	t.Parallel()
	const prune = `select rewind.prune_history($1)`

	t.Run("by history_retention", func(t *testing.T) {
		t.Parallel()
		w := newHistory(t)
		for _, step := range []struct {
			retention string
			deleted   int64
			left      [3]int64
		}{
			{"720h", 7, [3]int64{2, 1, 1}},
			{"720h", 0, [3]int64{2, 1, 1}},
			{"2h", 1, [3]int64{1, 1, 1}},
			{"0s", 1, [3]int64{0, 1, 1}},
		} {
			w.exec(`select rewind.set_options(jsonb_build_object('history_retention', $1::text))`, step.retention)
			if n := queryOne[int64](t, w.pool, prune, 1000); n != step.deleted || w.left() != step.left {
				t.Errorf("%s: %d rows deleted, left %v, want %d and %v", step.retention, n, w.left(), step.deleted, step.left)
			}
		}
	})

	t.Run("a piece at a time", func(t *testing.T) {
		t.Parallel()
		w := newHistory(t)
		w.exec(`select rewind.set_options('{"history_retention": "0s"}')`)
		w.exec(`delete from rewind.workers`)
		for i := int64(2); i >= 0; i-- {
			if n := queryOne[int64](t, w.pool, prune, 1); n != 2 || w.left() != [3]int64{i, 0, i + 1} {
				t.Errorf("%d rows deleted, left %v", n, w.left())
			}
		}
		if n := queryOne[int64](t, w.pool, prune, 1); n != 0 {
			t.Errorf("%d rows deleted of nothing", n)
		}
		wantCode(t, w.pool, "22023", prune, 0)
		wantCode(t, w.pool, "22023", prune, nil)
		wantCode(t, w.pool, "22023", `select rewind.prune_history(p_options => '{"a": 1}')`)
	})

	t.Run("waits for nobody", func(t *testing.T) {
		t.Parallel()
		w := newHistory(t)
		w.exec(`select rewind.set_options('{"history_retention": "0s"}')`)
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctxOf(t))
		const claim = `update rewind.perspective_stream_locks set expires_at = rewind._now() + interval '30s' where owner = '3'`
		if _, err := tx.Exec(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if n := queryOne[int64](t, w.pool, prune, 1000); n != 8 {
			t.Errorf("%d rows deleted beside one who takes over a lock, want 8", n)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.left() != [3]int64{0, 1, 2} {
			t.Errorf("left %v", w.left())
		}

		busy, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Rollback(ctxOf(t))
		if _, err := busy.Exec(t.Context(), prune, 1000); err != nil {
			t.Fatal(err)
		}
		testdb.Advance(t, w.pool, 2*time.Hour)
		if n := queryOne[int64](t, w.pool, prune, 1000); n != 0 {
			t.Errorf("%d rows deleted while another is at it", n)
		}
	})

	t.Run("by workers", func(t *testing.T) {
		t.Parallel()
		w := newHistory(t)
		runUntilIdle(t, w, worker.Config{})
		if w.left() != [3]int64{2, 1, 1} {
			t.Errorf("left %v", w.left())
		}
	})
}

func TestSystemRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	testdb.SetClock(t, w.pool, time.UnixMilli(1_700_000_000_000))
	for range 3 {
		w.exec(`select from rewind.publish_system_event('Told', 'p', '{}')`)
		w.exec(`select from rewind.publish_system_event('Told', 't', '{}')`)
		testdb.Advance(t, w.pool, 240*time.Hour)
	}
	// prune is done by a role that may not touch the log.
	prune := func(limit, wantDeleted, wantLeft int64) {
		t.Helper()
		tx := begin(t, w.pool, pgx.TxOptions{})
		if _, err := tx.Exec(t.Context(), `set local role rewind_worker`); err != nil {
			t.Fatal(err)
		}
		deleted := queryOne[int64](t, tx, `select rewind.prune_history($1)`, limit)
		commit(t, tx)
		if types, _ := w.systemEvents(); deleted != wantDeleted || int64(len(types)) != wantLeft {
			t.Errorf("%d deleted, %d left, want %d and %d", deleted, len(types), wantDeleted, wantLeft)
		}
	}
	retain := func(retention string) {
		t.Helper()
		w.exec(`select rewind.set_options(jsonb_build_object('system_retention', $1::text))`, retention)
	}

	prune(1000, 0, 6)
	testdb.Advance(t, w.pool, time.Hour)
	w.exec(`select from rewind.create_perspective('reader', '$system', 'app.chain(jsonb, rewind.event)')`)
	prune(1000, 0, 6)
	w.exec(`select from rewind.drop_perspective('reader')`)
	w.exec(`select from rewind.create_feed_consumer('audit', '$system', null, '{"lease": "1000h"}')`)
	prune(1000, 0, 6)
	w.exec(`select rewind.advance_feed_consumer('audit', rewind.claim_feed_consumer('audit', 'me'),
	  rewind.feed_cursor_at('$system', p_hlc => (select hlc from rewind.wal where tree_id = 1 and wal_offset = 1)))`)
	prune(1000, 1, 5)

	w.exec(`select rewind.drop_feed_consumer('audit')`)
	prune(1000, 1, 4)
	prune(1000, 0, 4)
	retain("300h")
	prune(1, 1, 3)
	prune(1, 1, 2)
	prune(1, 0, 2)
	retain("0s")
	prune(1000, 0, 2) // the last one of each stream stays
	w.exec(`select from rewind.publish_system_event('Told', 'p', '{}')`)
	testdb.Advance(t, w.pool, time.Hour)
	prune(1000, 1, 2)
}
