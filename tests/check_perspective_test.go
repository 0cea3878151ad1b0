package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestCheckPerspective(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function string
		want     []string // among others
	}{
		"well": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
			  select jsonb_build_object('last', event.payload -> 'v', 'said', 'now() from app.rates') -- clock_timestamp()
			$$`,
			[]string{"ok determinism", "ok batches", "ok errors", "note order depends on the order", "ok streams 5 "},
		},
		"any order": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
			  select jsonb_build_object('sum', coalesce((model -> 'sum')::int, 0) + (event.payload -> 'v')::int) $$`,
			[]string{"note order folded in other orders", "ok determinism"},
		},
		"the clock": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
			  begin return to_jsonb(clock_timestamp()); end $$`,
			[]string{"warning function app.f calls clock_timestamp, which may give another result each time", "warning determinism folded twice"},
		},
		"the date": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable as $$ select to_jsonb(current_date) $$`,
			[]string{"warning function app.f reads current_date"},
		},
		"a table": {
			`create table app.rates (rate float); create function app.f(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
			  declare r float; begin select rate into r from app.rates limit 1; return to_jsonb(coalesce(r, 1)); end $$`,
			[]string{"warning function app.f reads or writes app.rates", "note function app.f calculates in floating point"},
		},
		"a function of theirs": {
			`create function app.helper() returns text language sql immutable as $$ select app.other() $$;
			 create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable as $$ select to_jsonb(app.helper()) $$`,
			[]string{"warning function app.other calls random"},
		},
		"a body that was parsed": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable return to_jsonb(app.other())`,
			[]string{"warning function app.f calls app.other"},
		},
		"dynamic": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
			  declare r jsonb; begin execute 'select 1' into r; return jsonb '{}'; end $$`,
			[]string{"warning function app.f executes statements"},
		},
		"raises": {
			`create function app.f(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
			  begin if (event.payload ->> 'v')::int = 3 then raise 'no threes'; end if; return model; end $$`,
			[]string{"warning errors raises for stream", "ok determinism"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			w.exec(`create function app.other() returns text language sql volatile as $$ select random()::text $$`)
			for i := range 20 {
				w.append(fmt.Sprint("s", i%5), testEvent{at: 10 * i, v: 1 + i%6})
			}
			w.exec(c.function, pgx.QueryExecModeSimpleProtocol)
			w.exec(`select rewind.create_perspective('f', 't', 'app.f(jsonb, rewind.event)')`)
			w.exec(`call rewind.catch_up('f')`)
			found := texts(t, w.pool, `select severity || ' ' || subject || ' ' || finding from rewind.check_perspective('f')`)
			for _, want := range c.want {
				if !slices.ContainsFunc(found, func(f string) bool { return len(f) >= len(want) && f[:len(want)] == want }) {
					t.Errorf("%q is missing among %q", want, found)
				}
			}
			if name == "well" || name == "any order" {
				if i := slices.IndexFunc(found, func(f string) bool { return f[0] == 'w' }); i >= 0 {
					t.Errorf("a safe fold is warned of: %s", found[i])
				}
			}
		})
	}
}

func TestCheckPerspectiveRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.register_perspective('g', 't')`)
	wantCode(t, w.pool, "RW006", `select rewind.check_perspective('unknown')`)
	wantCode(t, w.pool, "0A000", `select rewind.check_perspective('g')`)
	wantCode(t, w.pool, "22023", `select rewind.check_perspective('p', '{"streams": 0}')`)
	if found := texts(t, w.pool, `select severity || ' ' || finding from rewind.check_perspective('p')`); !slices.Equal(found, []string{"note 0 of at most 1000 events were tried"}) {
		t.Errorf("without streams: %q", found)
	}
}

// A skipped event is not folded, and what was before it stays: a fold event by event began anew after it.
func TestCheckPerspectiveOfSkippedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create function app.f(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
		select case when event.payload ->> 'v' <> '9' then jsonb_build_object('sum', coalesce((model -> 'sum')::int, 0) + (event.payload -> 'v')::int) end $$`)
	w.exec(`select rewind.create_perspective('f', 't', 'app.f(jsonb, rewind.event)')`)
	for _, v := range [][]int{{1, 2, 3}, {1, 9, 3}, {4}} { // a model, no model, no event
		stream := fmt.Sprint(v)
		for i, v := range v {
			w.append(stream, testEvent{at: i, v: v})
		}
		w.exec(`call rewind.catch_up('f')`)
		w.exec(`
			select from rewind.skip_perspective_event('f', $1,
				(select event_id from rewind.wal where stream_id = rewind.stream_id('t', $1) order by event_id desc limit 1), 'skipped')`, stream)
	}
	w.exec(`call rewind.catch_up('f')`)
	for _, f := range texts(t, w.pool, `select severity || ' ' || subject || ' ' || finding from rewind.check_perspective('f')`) {
		if f[0] == 'w' {
			t.Errorf("a safe fold is warned of: %s", f)
		}
	}
}
