package tests

import (
	"strings"
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestCreatePerspective(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(foldSQL)
	exec(`select from rewind.create_tree('t', 4)`)
	exec(`
		create function app.stable(model jsonb, event rewind.event) returns jsonb language sql stable as 'select model';
		create function app.strict(model jsonb, event rewind.event) returns jsonb language sql immutable strict as 'select model';
		create function app.other(model json, event rewind.event) returns jsonb language sql immutable as 'select null::jsonb';
		create function app.result(model jsonb, event rewind.event) returns text language sql immutable as 'select null::text';
		create table app.things (n int);
		create function app.unqualified(model jsonb, event rewind.event) returns jsonb language plpgsql immutable set search_path = app as
			'begin return helper(model); end';
		create function app.helper(model jsonb) returns jsonb language sql immutable as 'select model';
		create function app.unpinned(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as
			'begin return helper(model); end';
		create function app.raises(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as
			'begin if event.payload is null then raise exception ''no payload''; end if; return model; end';`)

	t.Run("refuses unsuitable functions", func(t *testing.T) {
		for function, reason := range map[string]string{
			"app.stable(jsonb, rewind.event)":   "immutable",
			"app.strict(jsonb, rewind.event)":   "strict",
			"app.other(json, rewind.event)":     "(model jsonb, event rewind.event)",
			"app.result(jsonb, rewind.event)":   "returns jsonb",
			"app.unpinned(jsonb, rewind.event)": "helper(jsonb) does not exist",
		} {
			pgErr := wantCode(t, pool, "42P13", `select from rewind.create_perspective('x', 't', $1::text::regprocedure)`, function)
			if !strings.Contains(pgErr.Message, reason) || pgErr.Hint == "" {
				t.Errorf("%s: %q, hint %q; want it to speak of %q", function, pgErr.Message, pgErr.Hint, reason)
			}
		}
		wantCode(t, pool, "42P13", `select from rewind.create_perspective('x', 't', null)`)
	})
	t.Run("accepts a function with a search path of its own, and one that raises on the trial event", func(t *testing.T) {
		exec(`select from rewind.create_perspective('own path', 't', 'app.unqualified(jsonb, rewind.event)')`)
		exec(`select from rewind.create_perspective('raises', 't', 'app.raises(jsonb, rewind.event)')`)
	})
	t.Run("is idempotent, and refuses another definition", func(t *testing.T) {
		create := `select from rewind.create_perspective('p', 't', 'app.chain(jsonb, rewind.event)', array['b', 'a'])`
		exec(create)
		exec(create)
		exec(`select from rewind.create_perspective('p', 't', 'app.chain(jsonb, rewind.event)', array['a', 'b', 'a'], p_options => '{"debounce_window": "1s"}')`)
		if got := queryOne[string](t, pool, `select options ->> 'debounce_window' from rewind.perspectives where perspective_name = 'p'`); got != "1s" {
			t.Errorf("options of a perspective that is there were not merged: %q", got)
		}
		for _, other := range []string{
			`'app.raises(jsonb, rewind.event)', array['a', 'b']`,
			`'app.chain(jsonb, rewind.event)'`,
			`'app.chain(jsonb, rewind.event)', array['a', 'b'], '{"n": 1}'`,
		} {
			wantCode(t, pool, "RW007", `select from rewind.create_perspective('p', 't', `+other+`)`)
		}
	})
	t.Run("names what is unknown or malformed", func(t *testing.T) {
		wantCode(t, pool, "RW005", `select from rewind.create_perspective('x', 'nowhere', 'app.chain(jsonb, rewind.event)')`)
		for _, bad := range []string{
			`'', 't', 'app.chain(jsonb, rewind.event)'`,
			`repeat('x', 64), 't', 'app.chain(jsonb, rewind.event)'`,
			`'x', 't', 'app.chain(jsonb, rewind.event)', '{}'`,
			`'x', 't', 'app.chain(jsonb, rewind.event)', null, 'null'`,
			`'x', 't', 'app.chain(jsonb, rewind.event)', null, '{}', 0`,
			`'x', 't', 'app.chain(jsonb, rewind.event)', p_options => '{"no_such": 1}'`,
		} {
			wantCode(t, pool, "22023", `select from rewind.create_perspective(`+bad+`)`)
		}
		wantCode(t, pool, "RW006", `select from rewind.apply_perspective_batch('nobody', 0)`)
		wantCode(t, pool, "RW018", `select from rewind.apply_perspective_batch('p', 99)`)
		wantCode(t, pool, "RW018", `select from rewind.apply_perspective_batch('p', 0, 10, 4711)`)
		wantCode(t, pool, "22023", `select from rewind.apply_perspective_batch('p', 0, 0)`)
		wantCode(t, pool, "22023", `select from rewind.verify_perspective('p', 'typo')`)
	})
	t.Run("has a lens named verbatim", func(t *testing.T) {
		exec(`select from rewind.create_perspective('Odd "name"', 't', 'app.chain(jsonb, rewind.event)')`)
		exec(`select from rewind.append_events('t', 's', '[{"type": "a", "payload": {"v": 1}}]')`)
		exec(`call rewind.catch_up('Odd "name"')`)
		if got := queryOne[string](t, pool, `select stream_key || (model ->> 'count') || events_applied from lens."Odd ""name"""`); got != "s11" {
			t.Errorf("lens shows %q", got)
		}
	})
	t.Run("pauses and resumes", func(t *testing.T) {
		exec(`select from rewind.pause_perspective('p')`)
		wantCode(t, pool, "RW014", `select from rewind.apply_perspective_batch('p', 0)`)
		exec(`select from rewind.resume_perspective('p')`)
		exec(`select from rewind.apply_perspective_batch('p', 0)`)
	})
	t.Run("drops all of it", func(t *testing.T) {
		for _, name := range []string{"p", `Odd "name"`, "raises", "own path"} {
			if _, err := pool.Exec(t.Context(), `select from rewind.drop_perspective($1)`, name); err != nil {
				t.Fatal(err)
			}
		}
		if left := texts(t, pool, `
			select oid::regclass::text from pg_class where relnamespace in ('rewind_gen'::regnamespace, 'lens'::regnamespace)
			union all select oid::regprocedure::text from pg_proc where pronamespace = 'rewind_gen'::regnamespace`); len(left) > 0 {
			t.Errorf("left after the drop: %v", left)
		}
		wantCode(t, pool, "RW006", `select from rewind.drop_perspective('p')`)
	})
}

// A perspective reads only the events of its types, and what isn't an event never.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.create_perspective('b only', 't', 'app.chain(jsonb, rewind.event)', array['b'])`)
	w.exec(`select from rewind.append_events('t', 's', '[{"type": "a", "payload": {"v": 1}}, {"type": "b", "payload": {"v": 2}}, {"type": "a", "payload": {"v": 3}}]')`)
	w.exec(`select from rewind.append_events('t', 'none', '[{"type": "a", "payload": {"v": 1}}]')`)
	w.exec(`call rewind.catch_up('b only')`)
	if got := queryOne[string](t, w.pool, `select string_agg(format('%s %s %s', stream_key, model ->> 'count', events_applied), ',') from lens."b only"`); got != "s 1 1" {
		t.Errorf("lens shows %q", got)
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_cursors`); n != 1 {
		t.Errorf("%d cursors; a stream without a matching event has none", n)
	}
	// Late by an event of another type is not late.
	w.exec(`select from rewind.append_events('t', 's', '[{"type": "a", "time": 1, "payload": {"v": 9}}]')`)
	w.exec(`call rewind.catch_up('b only')`)
	w.exec(`select from rewind.append_events('t', 's', '[{"type": "b", "time": 2, "payload": {"v": 4}}]')`)
	w.exec(`call rewind.catch_up('b only')`)
	if got := queryOne[int64](t, w.pool, `select (model ->> 'count')::bigint from lens."b only"`); got != 2 {
		t.Errorf("%d events folded, want 2", got)
	}
	if found := texts(t, w.pool, `select problem from rewind.verify_perspective('b only')`); len(found) > 0 {
		t.Error(found)
	}
}
