package tests

import (
	"testing"

	"github.com/google/uuid"
)

// ASSERT raises what no handler of OTHERS sees. One that a fold raises is its event's error like any other: it held up the partition for good.
func TestAssertionsOfFolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create function app.sure(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		begin
		  assert event.event_id is not null;
		  assert event.payload ->> 'v' <> '666', 'unsure of it';
		  return jsonb_build_object('n', coalesce((model ->> 'n')::int, 0) + 1);
		end $$`)
	w.exec(`select from rewind.create_perspective('sure', 't', 'app.sure(jsonb, rewind.event)')`)
	w.append("bad", testEvent{at: 1, v: 1}, testEvent{at: 2, v: 666})
	w.append("good", inOrder(5)...)
	for _, built := range []bool{true, false} {
		w.exec(`select from rewind.apply_perspective_batch('sure', 0)`)
		if built {
			w.append("bad", testEvent{at: 3, v: 1})
			w.append("worse", testEvent{at: 1, v: 666})
			w.append("good", testEvent{at: 6, v: 1})
		}
	}
	w.exec(`call rewind.catch_up('sure')`)
	failing := queryOne[uuid.UUID](t, w.pool, `select event_id from rewind.wal where stream_id = rewind.stream_id('t', 'bad') and stream_version = 2`)
	for _, s := range w.states("sure") {
		want := map[string]int64{"bad": 1, "worse": 0, "good": 6}[s.Stream]
		if s.AppliedVersion != want || s.Status&4 == 0 != (s.Stream == "good") {
			t.Errorf("%+v, want version %d", s, want)
		}
	}
	got := queryOne[uuid.UUID](t, w.pool, `
		select error_event_id from rewind.perspective_cursors
		where stream_id = rewind.stream_id('t', 'bad') and status & 4 = 4 and error = 'unsure of it'`)
	if got != failing {
		t.Errorf("event %v is blamed, want %v", got, failing)
	}
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.verify_perspective('sure')`); n != 0 {
		t.Errorf("%d problems", n)
	}
	// It is found where the fold began to raise later, too.
	w.exec(`create or replace function app.sure(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		begin assert false, 'never sure'; end $$`)
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.verify_perspective('sure') where problem = 'model'`); n == 0 {
		t.Error("a fold that raises was verified")
	}
}
