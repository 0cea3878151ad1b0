package tests

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func TestStorePerspectiveEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("late", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	w.append("in order", testEvent{at: 10, v: 1})
	w.apply()
	w.append("late", testEvent{at: 15, v: 3}, testEvent{at: 5, v: 4}, testEvent{at: 30, v: 5})
	w.append("in order", testEvent{at: 11, v: 2})
	w.append("new", testEvent{at: 2, v: 1}, testEvent{at: 1, v: 2})

	generation := queryOne[int32](t, w.pool, `select active_generation from rewind.perspectives`)
	store := `select stream_id from rewind.store_perspective_events($1, 0, 3, 99)`
	rows, err := w.pool.Query(t.Context(), store, generation)
	if err != nil {
		t.Fatal(err)
	}
	flagged, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		t.Fatal(err)
	}
	if len(flagged) != 1 || flagged[0] != queryOne[uuid.UUID](t, w.pool, `select rewind.stream_id('t', 'late')`) {
		t.Errorf("flagged %v, want the late stream alone", flagged)
	}
	c := w.cursor("late")
	if c.Status&32 == 0 || c.AppliedVersion != 2 || c.Trigger == nil {
		t.Errorf("late cursor is %+v, want it flagged at version 2", c)
	}
	least := queryOne[uuid.UUID](t, w.pool, `select event_id from rewind.wal where payload ->> 'v' = '4'`)
	if c.Trigger == nil || *c.Trigger != least {
		t.Errorf("trigger %v, want the least late event %v", c.Trigger, least)
	}

	first := queryOne[bool](t, w.pool, `select rewind_flagged_at = rewind_first_flagged_at from rewind.perspective_cursors where status & 32 = 32`)
	w.exec(store, generation)
	again := queryOne[bool](t, w.pool, `select rewind_flagged_at > rewind_first_flagged_at from rewind.perspective_cursors where status & 32 = 32`)
	if !first || !again {
		t.Error("flagging again must slide rewind_flagged_at and keep rewind_first_flagged_at")
	}
	wantCode(t, w.pool, "RW018", `select from rewind.store_perspective_events(4711, 0, 0, 1)`)
	w.catchUp()
	w.checkSettled()
}

// What an append does must not depend on cursors, nor the other way round: no lock of one is waited for by the other.
func TestAppendNeverTouchesCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	w.apply()
	w.append("s", testEvent{at: 20, v: 2})

	batch, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Rollback(t.Context())
	if _, err := batch.Exec(t.Context(), `select from rewind.apply_perspective_batch('p', 0)`); err != nil {
		t.Fatal(err)
	}
	// The batch is open and holds its cursor and partition: late and new events go in at once.
	w.exec(`set local lock_timeout = '50ms'; select from rewind.append_events('t', 's', '[{"type": "happened", "time": 1, "payload": {"v": 3}}]')`)

	open, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(t.Context())
	appendEvents(t, open, "s", testEvent{at: 30, v: 4})
	if err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	// An append is open and holds the partition's append lock: the live path goes on.
	w.exec(`set local lock_timeout = '50ms'; select from rewind.apply_perspective_batch('p', 0)`)
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.catchUp()
	w.checkSettled()
}

func TestMovingCursorsNeedsReadCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	w.apply()
	for _, call := range []string{
		`select rewind.apply_perspective_batch('p', 0)`,
		`select rewind.store_perspective_events(1, 0, 0, 1)`,
		`select rewind.complete_perspective_cursor_work(1, rewind.stream_id('t', 's'), 1, null, null, 0, 0)`,
		`select rewind.reset_perspective_cursor('p', 's')`,
		`select rewind.request_perspective_rewind('p', 's')`,
		`select rewind.retry_perspective_stream('p', 's')`,
		`select rewind.wait_for_perspective('p', '{}', '1s')`,
		// A trim would not see a perspective or consumer that was created meanwhile, nor these the trim.
		`select rewind.trim_tree('t', null)`,
		`select rewind.create_feed_consumer('c', 't')`,
		`select rewind.create_perspective('q', 't', 'app.chain(jsonb, rewind.event)')`,
		`select rewind.register_perspective('q', 't')`,
	} {
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			wantCode(t, tx, "RW020", call)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
