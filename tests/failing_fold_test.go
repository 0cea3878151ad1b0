package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func (w *world) fix() {
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
	begin
	  if (event.payload ->> 'v')::int % 7 = 0 then return null; end if;
	  return jsonb_build_object('digest', md5(coalesce(model ->> 'digest', '') || (event.payload ->> 'v')), 'count', coalesce((model ->> 'count')::int, 0) + 1);
	end $$`)
}

func TestFailingFold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2}, testEvent{at: 30, v: 3, fail: true})
	w.append("other", testEvent{at: 10, v: 1})
	w.append("new", testEvent{at: 10, v: 1, fail: true})
	w.apply()
	failing := queryOne[uuid.UUID](t, w.pool, `select event_id from rewind.wal where payload ->> 'v' = '3'`)

	c := w.cursor("s")
	if c.Status != 4 || c.AppliedVersion != 0 || c.ErrorEventID == nil || *c.ErrorEventID != failing || *c.Error != "event 3 fails" || c.Attempts != 1 || c.RetryAt == nil {
		t.Errorf("failing cursor: %+v", c)
	}
	if c := w.cursor("other"); c.Status != 2 || c.AppliedVersion != 1 {
		t.Errorf("a failing stream held up another: %+v", c)
	}
	if c := w.cursor("new"); c.Status != 4 || c.Model != nil {
		t.Errorf("failing new cursor: %+v", c)
	}
	w.checkSound()

	// The retry carries the stream to right before the failing event; newer ones wait for it.
	w.append("s", testEvent{at: 40, v: 4})
	w.catchUp()
	c = w.cursor("s")
	if diff := cmp.Diff(chain([]int{1, 2}), c.Model); diff != "" || c.AppliedVersion != 2 || c.Status&4 == 0 || *c.ErrorEventID != failing {
		t.Errorf("after the retry: %+v\n%s", c, diff)
	}
	w.checkSound()

	w.fix()
	w.catchUp()
	w.checkSettled()
	if c := w.cursor("s"); c.Error != nil || c.Attempts != 0 || c.RetryAt != nil || c.ErrorEventID != nil {
		t.Errorf("a repaired cursor keeps its error: %+v", c)
	}
}

// A batch with a failing event is folded a second time: what it flagged, repaired and saved on the way is there once.
func TestFailingFoldBesideLateStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 3}})
	w.append("deep", testEvent{at: 20, v: 1}, testEvent{at: 30, v: 2}, testEvent{at: 40, v: 3}, testEvent{at: 50, v: 4})
	w.append("shallow", testEvent{at: 20, v: 5})
	w.apply()
	w.append("bad", testEvent{at: 10, v: 6}, testEvent{at: 20, v: 7, fail: true})
	w.append("deep", testEvent{at: 10, v: 8})
	w.append("shallow", testEvent{at: 10, v: 9})
	w.apply()
	for stream, status := range map[string]int32{"bad": 4, "deep": 32, "shallow": 2} {
		if c := w.cursor(stream); c.Status != status {
			t.Errorf("%s: status %d, want %d", stream, c.Status, status)
		}
	}
	if diff := cmp.Diff(chain([]int{9, 5}), w.cursor("shallow").Model); diff != "" {
		t.Error(diff)
	}
	w.checkSound()
	w.fix()
	w.catchUp()
	w.checkSettled()
}

// The longest arrival prefix that folds: a late event that makes an applied one fail is what has to stay out.
func TestFailingLateEvent(t *testing.T) {
	t.Parallel()
	for name, inline := range map[string]int{"inline": 256, "rewind path": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": inline}})
			w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
			w.apply()
			w.append("s", testEvent{at: 30, v: 3}, testEvent{at: 5, v: 4}, testEvent{at: 15, v: 5, fail: true}, testEvent{at: 40, v: 6})
			w.apply()
			w.catchUp()
			w.checkSound()
			c := w.cursor("s")
			if diff := cmp.Diff(chain([]int{4, 1, 2, 3}), c.Model); diff != "" || c.AppliedVersion != 4 || c.Status&4 == 0 {
				t.Errorf("not at the longest prefix: %+v\n%s", c, diff)
			}
			w.fix()
			w.catchUp()
			w.checkSettled()
		})
	}
}

func TestParking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"max_attempts": 2, "retry_backoff": "1ms"}})
	w.append("s", testEvent{at: 10, v: 1, fail: true})
	w.apply()
	w.catchUp()
	if c := w.cursor("s"); c.Attempts != 2 || c.RetryAt != nil {
		t.Errorf("not parked after the last attempt: %+v", c)
	}
	w.fix()
	w.catchUp()
	if c := w.cursor("s"); c.Status != 4 {
		t.Errorf("a parked stream was tried: %+v", c)
	}
	w.exec(`select from rewind.retry_perspective_stream('p', 's')`)
	w.catchUp()
	w.checkSettled()
}

// Errors that speak of the server and not of the event end the batch, and nothing of it is written.
func TestServerErrorsAreNotTheEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
	begin raise exception 'later' using errcode = '40001'; end $$`)
	w.append("s", testEvent{at: 10, v: 1})
	wantCode(t, w.pool, "40001", `select from rewind.apply_perspective_batch('p', 0)`)
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors`); n != 0 {
		t.Errorf("%d cursors after a failed batch", n)
	}
	w.fix()
	w.apply()
	w.checkSettled()
}

func TestReservedModelKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language sql immutable as $$ select jsonb '{"rewind:error": 1}' $$`)
	w.append("s", testEvent{at: 10, v: 1})
	w.apply()
	if c := w.cursor("s"); c.Status != 4 || c.Model != nil {
		t.Errorf("%+v", c)
	}
}

// A fold that may run in a parallel worker, and fails where the server likes parallel plans: before PostgreSQL 17 nothing can be tried there.
func TestFailingFoldThatIsParallelSafe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for i := range 500 {
		w.append(fmt.Sprint("s", i%50), testEvent{at: i, v: 1 + i%6})
	}
	w.exec(`alter function app.chain(jsonb, rewind.event) parallel safe`)
	w.exec(`select from rewind.create_perspective('parallel', 't', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`call rewind.catch_up('parallel')`)
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable parallel safe as
		$$ begin raise 'fails'; end $$`)
	setting := "force_parallel_mode"
	if queryOne[int](t, w.pool, `select current_setting('server_version_num')::int`) >= 160000 {
		setting = "debug_parallel_query"
	}
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), fmt.Sprintf(
		`set local %s = on; set local parallel_setup_cost = 0; set local parallel_tuple_cost = 0; set local min_parallel_table_scan_size = 0`, setting)); err != nil {
		t.Fatal(err)
	}
	if n := queryOne[int](t, tx, `select count(*) from rewind.verify_perspective('parallel') where problem = 'model'`); n != 50 {
		t.Errorf("%d models are wrong, want 50", n)
	}
	refused := wantCode(t, tx, "RW016", `select rewind.model_as_of('parallel', s.stream_key) from rewind.streams s`)
	if !strings.HasSuffix(refused.Message, ": fails") {
		t.Error(refused.Message)
	}
}
