package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
)

// newCounted is a database with a tree t, three events in two streams, and a perspective that counts, brought to the head.
func newCounted(t *testing.T) (database string, pool *pgxpool.Pool) {
	t.Helper()
	url := testdb.NewURL(t)
	pool = testdb.Open(t, url)
	exec(t, pool, `create schema app`)
	exec(t, pool, `
		create function app.tally(model jsonb, event rewind.event) returns jsonb language plpgsql immutable
		as $$ begin
		  if event.event_type = 'poison' then raise 'poisoned'; end if;
		  return jsonb_build_object('n', coalesce((model ->> 'n')::int, 0) + 1);
		end $$`)
	exec(t, pool, `select rewind.create_tree('t', 2)`)
	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "x", "time": "2026-03-02T09:00:00Z"}, {"type": "x", "time": "2026-03-02T09:00:00Z"}]')`)
	exec(t, pool, `select rewind.append_events('t', 'b', '[{"type": "x", "time": "2026-03-02T09:00:00Z"}]')`)
	database = "--database-url=" + url
	runCommand(t, exitDone, "perspective", "create", "tally", "--tree=t", "--apply=app.tally", database)
	exec(t, pool, `call rewind.catch_up('tally')`)
	return database, pool
}

func TestStatus(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	read := func() (s status) {
		t.Helper()
		decode(t, runCommand(t, exitDone, "status", "--json", database), &s)
		return s
	}
	first := read()
	if len(first.Perspectives) != 1 || len(first.Partitions) != 3 || first.Workers == nil || first.Consumers == nil || first.OldestAppend != nil {
		t.Fatalf("%+v", first)
	}
	want := perspectiveStatus{PerspectiveName: "tally", State: "active", Version: 1, GenerationID: first.Perspectives[0].GenerationID}
	if first.Perspectives[0] != want {
		t.Errorf("%+v, want %+v", first.Perspectives[0], want)
	}

	t.Run("has_the_documented_keys", func(t *testing.T) {
		var s map[string]json.RawMessage
		decode(t, runCommand(t, exitDone, "status", "--json", database), &s)
		for _, key := range []string{"perspectives", "partitions", "workers", "consumers", "oldest_append"} {
			if _, found := s[key]; !found {
				t.Errorf("no key %s", key)
			}
		}
	})

	t.Run("counts_what_is_unread_and_owed", func(t *testing.T) {
		exec(t, pool, `select rewind.append_events('t', 'b', '[{"type": "poison"}]')`)
		exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "x"}]')`)
		if p := read().Perspectives[0]; p.LagRecords != 2 || p.LagSeconds <= 0 {
			t.Errorf("before it is read: %+v", p)
		}
		runCommand(t, exitDone, "options", "--perspective=tally", "set", "max_attempts=1", database)
		exec(t, pool, `call rewind.catch_up('tally')`)
		runCommand(t, exitDone, "perspective", "rewind", "tally", "a", database)
		if p := read().Perspectives[0]; p.LagRecords != 0 || p.LagSeconds != 0 || p.Failed != 1 || p.Parked != 1 || p.Flagged != 1 {
			t.Errorf("after: %+v", p)
		}
	})

	t.Run("names_the_oldest_append", func(t *testing.T) {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		if _, err := tx.Exec(t.Context(), `select rewind.append_events('t', 'a', '[{"type": "x"}]')`); err != nil {
			t.Fatal(err)
		}
		var pid int32
		if err := tx.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		s := read()
		if s.OldestAppend == nil || s.OldestAppend.PID != pid || s.OldestAppend.AgeSeconds <= 0 {
			t.Errorf("oldest append %+v, want that of pid %d", s.OldestAppend, pid)
		}
		if output := runCommand(t, exitDone, "status", database); !strings.Contains(output, "oldest append under way: pid ") {
			t.Error(output)
		}
	})

	t.Run("tells_who_folds", func(t *testing.T) {
		exec(t, pool, `select rewind.register_perspective('in_go', 't')`)
		exec(t, pool, `
			insert into rewind.workers (worker_id, started_at, heartbeat_at, version, go_perspectives)
			values ('w1', now(), now(), 'v', '{}'), ('w2', now(), now() - interval '1 hour', 'v', '{"in_go": 1}')`)
		stdout, stderr := runBoth(t, exitDone, "status", database)
		if !strings.Contains(stdout, "alive") || !strings.Contains(stdout, "silent") || !strings.Contains(stderr, `"in_go" is folded in Go, and no live worker knows it`) {
			t.Error(stdout, stderr)
		}
		exec(t, pool, `update rewind.workers set heartbeat_at = now()`)
		if _, stderr := runBoth(t, exitDone, "status", "--json", database); stderr != "" {
			t.Error(stderr)
		}
	})
}

func TestVerify(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	if output := runCommand(t, exitDone, "verify", database); output != "tally: well (2 streams, 3 events)\n" {
		t.Error(output)
	}
	if output := runCommand(t, exitDone, "verify", "--json", database); output != "" {
		t.Error(output)
	}
	exec(t, pool, `update rewind.perspective_cursors c set model = '{"n": 7}' from rewind.streams s where s.stream_id = c.stream_id and s.stream_key = 'a'`)

	var problem verifyProblem
	decode(t, runCommand(t, exitFailed, "verify", "tally", "--json", database), &problem)
	if problem.PerspectiveName != "tally" || *problem.StreamKey != "a" || problem.Problem != "model" ||
		!bytes.Equal(problem.Expected, []byte(`{"n":2}`)) || !bytes.Equal(problem.Actual, []byte(`{"n":7}`)) || *problem.AppliedVersion != 2 {
		t.Errorf("%+v", problem)
	}
	if output := runCommand(t, exitFailed, "verify", database); !strings.Contains(output, "tally: 1 problem (2 streams, 3 events)") {
		t.Error(output)
	}
	runCommand(t, exitDone, "verify", "tally", "--stream=b", database)
	runCommand(t, exitFailed, "verify", "tally", "--stream=a", database)
	runCommand(t, exitFailed, "verify", "unknown", database)
	runCommand(t, exitUsage, "verify", "--stream=a", database)
	for _, args := range [][]string{
		{"--sample=0"}, {"--sample=101%"}, {"--sample=some"}, {"--from=x", "tally"}, {"--from=00000000-0000-0000-0000-000000000000"},
		{"tally", "--stream=a", "--sample=1%"},
	} {
		runCommand(t, exitUsage, append(append([]string{"verify"}, args...), database)...)
	}
	runCommand(t, exitFailed, "verify", "--sample=100%", database)
	runCommand(t, exitDone, "verify", "tally", "--from=ffffffff-ffff-ffff-ffff-ffffffffffff", database)

	output := runCommand(t, exitDone, "verify", "--repair", database)
	if !strings.Contains(output, "tally: 1 problem") || !strings.Contains(output, "build them anew") {
		t.Error(output)
	}
	exec(t, pool, `call rewind.catch_up('tally')`)
	if output := runCommand(t, exitDone, "verify", database); output != "tally: well (2 streams, 3 events)\n" {
		t.Error(output)
	}
	runCommand(t, exitUsage, "verify", "tally", "--tenant=a", database)

	exec(t, pool, `select rewind.register_perspective('in_go', 't')`)
	if _, stderr := runBoth(t, exitDone, "verify", "in_go", database); !strings.Contains(stderr, "checked by the application that folds them") {
		t.Error(stderr)
	}
}

func TestVerifyWithoutPerspectives(t *testing.T) {
	t.Parallel()
	if _, stderr := runBoth(t, exitDone, "verify", "--database-url", testdb.NewURL(t)); !strings.Contains(stderr, "nothing to verify") {
		t.Error(stderr)
	}
}

func TestPerspectiveExplain(t *testing.T) {
	t.Parallel()
	database, _ := newCounted(t)
	var last explainedEvent
	decode(t, runCommand(t, exitDone, "perspective", "explain", "tally", "a", "--last=1", "--json", database), &last)
	if last.Place != 2 || string(last.Model) != `{"n":2}` || !slices.Equal(last.LastSet, []string{"/n"}) || !last.Applied {
		t.Errorf("%+v", last)
	}
	output := runCommand(t, exitDone, "perspective", "explain", "tally", "a", database)
	for _, want := range []string{`: nothing → {"n":1}`, "/n: 1 → 2 *"} {
		if !strings.Contains(strings.ReplaceAll(output, `{"n": 1}`, `{"n":1}`), want) {
			t.Errorf("%q is missing in\n%s", want, output)
		}
	}
	runCommand(t, exitFailed, "perspective", "explain", "tally", "unknown", database)
	runCommand(t, exitFailed, "perspective", "explain", "unknown", "a", database)
	runCommand(t, exitUsage, "perspective", "explain", "tally", "a", "--last=-1", database)
}

func TestPerspectiveCheck(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	if output := runCommand(t, exitDone, "perspective", "check", "tally", database); !strings.Contains(output, "folded twice, every stream has the same model") {
		t.Error(output)
	}
	exec(t, pool, `create schema unsafe`)
	exec(t, pool, `create function unsafe.f(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$ begin return to_jsonb(random()); end $$`)
	exec(t, pool, `select rewind.create_perspective('unsafe', 't', 'unsafe.f(jsonb, rewind.event)')`)
	output := runCommand(t, exitFailed, "perspective", "check", "unsafe", "--json", database)
	if !strings.Contains(output, `"severity":"warning","finding":"calls random, which may give another result each time"`) {
		t.Error(output)
	}
	runCommand(t, exitFailed, "perspective", "check", "unknown", database)
	runCommand(t, exitUsage, "perspective", "check", "tally", "--streams=0", database)
}

func TestVerifyAgainst(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	other, otherPool := newCounted(t)
	against := "--against" + strings.TrimPrefix(other, "--database-url")
	compare := func(code int) string {
		t.Helper()
		return runCommand(t, code, "verify", "tally", against, database)
	}
	if output := compare(exitDone); output != "tally: equal (2 streams)\n" {
		t.Error(output)
	}
	exec(t, otherPool, `update rewind.perspective_cursors c set model = '{"n": 7}' from rewind.streams s where s.stream_id = c.stream_id and s.stream_key = 'a'`)
	exec(t, otherPool, `select rewind.append_events('t', k, '[{"type": "x"}]') from unnest(array['b', 'c']) k`)
	exec(t, otherPool, `call rewind.catch_up('tally')`)
	exec(t, pool, `select rewind.append_events('t', 'd', '[{"type": "x"}]')`)
	exec(t, pool, `call rewind.catch_up('tally')`)
	output := compare(exitFailed)
	for _, want := range []string{"tally: 4 differences (4 streams)", "other model", "other events", "missing here", "missing there"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in\n%s", want, output)
		}
	}
	var d difference
	decode(t, strings.Split(runCommand(t, exitFailed, "verify", "tally", against, "--json", database), "\n")[0], &d)
	if d.PerspectiveName != "tally" || d.Problem == "" || d.Here == nil && d.There == nil {
		t.Errorf("%+v", d)
	}
	for _, c := range []struct{ changed, note string }{{database, "version 2 here and 1 there"}, {other, ""}} {
		runCommand(t, exitDone, "perspective", "create", "tally", "--tree=t", "--apply=app.tally", "--version=2", c.changed)
		runCommand(t, exitDone, "run", "--until-idle", c.changed)
		if _, notes := runBoth(t, exitFailed, "verify", "tally", against, database); !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "version") {
			t.Errorf("version 2 is shown in %s: %s", c.changed, notes)
		}
	}
	runCommand(t, exitUsage, "verify", against, database)
	runCommand(t, exitUsage, "verify", "tally", against, "--repair", database)
	runCommand(t, exitFailed, "verify", "unknown", against, database)
	runCommand(t, exitNotReached, "verify", "tally", "--against=postgres://127.0.0.1:1/none", database)
}

func TestRewinds(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	if output := runCommand(t, exitDone, "rewinds", database); !strings.HasPrefix(output, "no rewinds (") {
		t.Error(output)
	}
	rewind := func(stream string) {
		t.Helper()
		runCommand(t, exitDone, "perspective", "rewind", "tally", stream, database)
		exec(t, pool, `call rewind.catch_up('tally')`)
	}
	rewind("a")
	rewind("b")

	var row rewindRow
	decode(t, runCommand(t, exitDone, "rewinds", "--json", "--limit=1", database), &row)
	if row.StreamKey != "b" || row.Outcome != "completed" || row.ReplaySource != "full" || row.EventsReplayed != 1 || string(row.Patch) != "[]" {
		t.Errorf("%+v", row)
	}
	if output := runCommand(t, exitDone, "rewinds", database); strings.Count(output, "completed") != 3 { // and the column
		t.Error(output)
	}
	runCommand(t, exitUsage, "rewinds", "--limit=-1", database)
	runCommand(t, exitUsage, "rewinds", "--limit=0", database)

	t.Run("follows", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		lines := make(chan rewindRow)
		done := make(chan int)
		go func() {
			done <- run(ctx, []string{"rewinds", "--follow", "--json", "--limit=1", database}, lineWriter(func(line []byte) {
				var row rewindRow
				if err := json.Unmarshal(line, &row); err != nil {
					t.Error(err)
				}
				lines <- row
			}), &bytes.Buffer{}, func(string) string { return "" })
		}()
		if row := <-lines; row.StreamKey != "b" {
			t.Errorf("first row is of stream %s", row.StreamKey)
		}
		rewind("a")
		if row := <-lines; row.StreamKey != "a" {
			t.Errorf("next row is of stream %s", row.StreamKey)
		}
		stop()
		if code := <-done; code != exitDone {
			t.Errorf("exits with %d when interrupted", code)
		}
	})
}

// lineWriter gets each line in a Write of its own, as a JSON encoder writes.
type lineWriter func(line []byte)

func (w lineWriter) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestPerspective(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	runCommand(t, exitDone, "perspective", "create", "ups", "--tree=t", "--apply=app.tally(jsonb, rewind.event)", "--event-type=up", "--event-type=UP",
		`--initial={"n": 10}`, "--option", "snapshot_every_n_events=7", "--option", "debounce_window=1s", database)
	output := runCommand(t, exitDone, "perspective", "list", "--json", database)
	for _, want := range []string{
		`"perspective_name":"tally"`, `"event_types":["UP","up"]`, `"initial":{"n":10}`,
		`"options":{"debounce_window":"1s","snapshot_every_n_events":7}`, `"apply":"app.tally(jsonb,rewind.event)"`, `"tree_name":"t"`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("list lacks %s: %s", want, output)
		}
	}
	if output := runCommand(t, exitDone, "perspective", "list", database); !strings.Contains(output, "UP, up") {
		t.Error(output)
	}
	stderr := runFailing(t, "perspective", "create", "more", "--tree=t", "--apply=app.unknown", database)
	if !strings.Contains(stderr, "app.unknown") {
		t.Error(stderr)
	}
	runCommand(t, exitUsage, "perspective", "create", "more", "--tree=t", "--apply=app.tally", "--initial={", database)

	state := func(query string) string { return strings.Join(rowsOf(t, pool, query), " ") }
	const stateOfTally = `select state from rewind.perspectives where perspective_name = 'tally'`
	runCommand(t, exitDone, "perspective", "pause", "tally", database)
	if s := state(stateOfTally); s != "paused" {
		t.Error("state is", s)
	}
	runCommand(t, exitDone, "perspective", "resume", "tally", database)
	if s := state(stateOfTally); s != "active" {
		t.Error("state is", s)
	}

	const cursorOfA = `
		select format('%s %s', status, coalesce(model::text, 'none')) from rewind.perspective_cursors join rewind.streams using (stream_id) where stream_key = 'a'`
	runCommand(t, exitDone, "perspective", "rewind", "tally", "a", database)
	if s := state(cursorOfA); s != `32 {"n": 2}` && s != `34 {"n": 2}` {
		t.Error("a requested rewind leaves cursor", s)
	}
	runCommand(t, exitDone, "perspective", "reset", "tally", "a", database)
	if s := state(cursorOfA); s != "32 none" {
		t.Error("a reset leaves cursor", s)
	}
	exec(t, pool, `call rewind.catch_up('tally')`)
	if stderr := runFailing(t, "perspective", "retry", "tally", "a", database); !strings.Contains(stderr, "has not failed") {
		t.Error(stderr)
	}
	if stderr := runFailing(t, "perspective", "rewind", "tally", "a", "--tenant=other", database); !strings.Contains(stderr, "RW013") || !strings.Contains(stderr, "hint: ") {
		t.Error(stderr)
	}
	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "poison"}]')`)
	exec(t, pool, `call rewind.catch_up('tally')`)
	runCommand(t, exitDone, "perspective", "retry", "tally", "a", database)
	poison := rowsOf(t, pool, `select event_id::text from rewind.wal where event_type = 'poison'`)[0]
	runCommand(t, exitUsage, "perspective", "skip", "tally", "a", poison, database)
	runCommand(t, exitUsage, "perspective", "skip", "tally", "a", "nope", "--reason=poisoned", database)
	runCommand(t, exitDone, "perspective", "skip", "tally", "a", poison, "--reason=poisoned", database)
	exec(t, pool, `call rewind.catch_up('tally')`)
	if s := state(cursorOfA); s != `2 {"n": 2}` {
		t.Error("a skipped event leaves cursor", s)
	}

	runCommand(t, exitDone, "perspective", "drop", "ups", database)
	runCommand(t, exitFailed, "perspective", "drop", "ups", database)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	database, _ := newCounted(t)
	read := func(args ...string) map[string]option {
		t.Helper()
		options := map[string]option{}
		for line := range strings.Lines(runCommand(t, exitDone, append(append([]string{"options", "--json"}, args...), database)...)) {
			var o option
			decode(t, line, &o)
			options[o.Option] = o
		}
		return options
	}
	want := func(options map[string]option, name, value, source string) {
		t.Helper()
		if o := options[name]; string(o.Value) != value || o.Source != source {
			t.Errorf("%s is %s from %s, want %s from %s", name, o.Value, o.Source, value, source)
		}
	}
	want(read(), "debounce_window", `"5s"`, "default")
	want(read("set", "debounce_window=1s", "rewind_share=0.5"), "debounce_window", `"1s"`, "installation")
	want(read("--perspective=tally"), "rewind_share", `0.5`, "installation")
	want(read("--perspective=tally", "set", "rewind_share=1"), "rewind_share", `1`, "perspective")
	want(read("--perspective=tally"), "rewind_share", `1`, "perspective")
	want(read("--tree=t", "set", "max_clock_skew=2h"), "max_clock_skew", `"2h"`, "tree")
	want(read("set", "debounce_window="), "debounce_window", `"5s"`, "default")
	if output := runCommand(t, exitDone, "options", database); !strings.Contains(output, "none") || !strings.Contains(output, "0.5") {
		t.Error(output)
	}
	if set := read("set", "debounce_window=2s", "rewind_share="); len(set) != 2 {
		t.Errorf("after set it shows %d options, want those that were set", len(set))
	}
	if stderr := runFailing(t, "options", "set", "nonsense=1", database); !strings.Contains(stderr, "nonsense") {
		t.Error(stderr)
	}
	if stderr := runFailing(t, "options", "--perspective=unknown", database); !strings.Contains(stderr, "RW006") {
		t.Error(stderr)
	}
	runCommand(t, exitUsage, "options", "--perspective=tally", "--tree=t", database)
	runCommand(t, exitUsage, "options", "set", "debounce_window", database)
}

// wantDoctor wants doctor to say something.
func wantDoctor(t *testing.T, database string, wantCode int, want ...string) {
	t.Helper()
	output := runCommand(t, wantCode, "doctor", database)
	for _, w := range want {
		if !strings.Contains(output, w) {
			t.Errorf("lacks %q: %s", w, output)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	look := func(wantCode int, want ...string) {
		t.Helper()
		wantDoctor(t, database, wantCode, want...)
	}
	look(exitDone, "ok    perspective tally: 0 records unread")

	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "poison"}]')`)
	look(exitFailed, "LOOK  perspective tally: 1 record unread, 0 streams with a repair to come, 0 failed; no live worker folds it")
	exec(t, pool, `insert into rewind.workers (worker_id, started_at, heartbeat_at, version) values ('w', now(), now(), 'v')`)
	look(exitDone, "ok    perspective tally: 1 record unread", "1 live worker")

	exec(t, pool, `call rewind.catch_up('tally')`)
	poison := rowsOf(t, pool, `select event_id::text from rewind.wal where event_type = 'poison'`)[0]
	look(exitFailed, "0 streams with a repair to come, 1 failed", "LOOK  stream a of perspective tally failed (", ") at event "+poison+", tried again at ",
		"poisoned; to try it now: rewindworker perspective retry tally a; "+
			"to leave the event out: rewindworker perspective skip tally a "+poison+" --reason TEXT\n")
	if output := runCommand(t, exitDone, "verify", database); output != "tally: well (2 streams, 3 events); 1 stream failed before an event: see rewindworker doctor\n" {
		t.Error(output)
	}
	exec(t, pool, `update rewind.perspective_cursors set retry_at = null where status & 4 <> 0`)
	look(exitFailed, "LOOK  stream a of perspective tally failed (", "parked")
	exec(t, pool, `update rewind.perspective_cursors set status = 2, error = null where status & 4 <> 0`)

	exec(t, pool, `
		insert into rewind.perspective_stream_locks (generation_id, stream_id, owner, reason, token, acquired_at, expires_at)
		select generation_id, stream_id, 'w', 'rewind', 1, now(), now() - interval '1 s' from rewind.perspective_cursors limit 1`)
	look(exitDone, "1 stream lock expired")
	exec(t, pool, `delete from rewind.workers`)
	look(exitFailed, "LOOK  1 stream lock expired")

	var f finding
	first, _, _ := strings.Cut(runCommand(t, exitFailed, "doctor", "--json", database), "\n")
	decode(t, first, &f)
	if f.Check != "schema" || f.Problem {
		t.Errorf("%+v", f)
	}
}

// A generation that failed, or that nobody is there to verify, is shown nowhere else than in status.
func TestDoctorOfRebuilds(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	look := func(wantCode int, want ...string) {
		t.Helper()
		wantDoctor(t, database, wantCode, want...)
	}
	exec(t, pool, `
		create function app.tally_2(model jsonb, event rewind.event) returns jsonb language plpgsql immutable
		as $$ begin
		  if event.stream_key = 'a' then raise 'not this one'; end if;
		  return '{}';
		end $$`)
	exec(t, pool, `select rewind.create_perspective('tally', 't', 'app.tally_2(jsonb, rewind.event)', p_version => 2)`)
	runCommand(t, exitFailed, "run", "--until-idle", database)
	look(exitFailed, "perspective tally, generation 2, which is not shown: 0 records unread",
		"LOOK  stream a of version 2 of perspective tally, which is not shown yet, failed: not this one\n",
		"LOOK  the blue-green rebuild of perspective tally, of version 2, failed: ",
		"; to try again: rewindworker perspective rebuild tally; to give it up: rewindworker perspective abort tally\n")
	runCommand(t, exitDone, "perspective", "abort", "tally", database)
	look(exitDone)

	exec(t, pool, `select rewind.begin_perspective_rebuild('tally', p_options => '{"hold": true}')`)
	runCommand(t, exitDone, "run", "--until-idle", database)
	look(exitFailed, "LOOK  the blue-green rebuild of perspective tally is done and not verified; to verify and show it: "+
		"rewindworker perspective rebuild tally --verify\n")
	leader, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Release()
	const leads = `(1381433340, (select max(generation_id) from rewind.perspective_generations))`
	if _, err := leader.Exec(t.Context(), `select pg_advisory_lock`+leads); err != nil {
		t.Fatal(err)
	}
	look(exitDone)
	if _, err := leader.Exec(t.Context(), `select pg_advisory_unlock`+leads); err != nil {
		t.Fatal(err)
	}
	runCommand(t, exitDone, "perspective", "rebuild", "tally", "--verify", database)
	look(exitDone)
}

// Behind a pooler that knows no prepared statements pgx must not ask for the types of parameters.
func TestWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	separator := "?"
	if strings.Contains(database, separator) {
		separator = "&"
	}
	database += separator + "default_query_exec_mode=exec"
	file := writeLines(t, `{"stream":"a","type":"x","time":1}`, `{"stream":"a","tenant_id":"other","type":"poison","time":1}`)
	for _, args := range [][]string{
		{"migrate"},
		{"perspective", "create", "more", "--tree=t", "--apply=app.tally", "--event-type=x", "--option=max_attempts=1"},
		{"import", "--tree=t", file},
		{"import", "--tree=u", writeLines(t, `{"stream":"a","type":"x","event_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`)},
		{"options", "--perspective=more", "set", "debounce_window=0s"},
		{"options", "--tree=t", "set", "max_clock_skew=2m"},
		{"perspective", "list"},
		{"perspective", "pause", "more"},
		{"perspective", "resume", "more"},
		{"status"},
		{"rewinds"},
		{"run", "--until-idle", "--perspective=more"},
		{"verify", "more"},
		{"verify", "more", "--stream=a"},
		{"perspective", "drop", "more"},
		{"options", "--tree=t", "set", "skew_policy=quarantine"},
		{"import", "--tree=t", writeLines(t, `{"stream":"a","type":"x","time":"2200-01-01T00:00:00Z"}`)},
		{"quarantine", "list"},
		{"quarantine", "drop", "1", "--reason=wrong clock"},
		{"quarantine", "release", "1"},
	} {
		runCommand(t, exitDone, append(args, database)...)
	}
	exec(t, pool, `call rewind.catch_up('tally')`)
	runCommand(t, exitDone, "perspective", "rewind", "tally", "b", database)
	runCommand(t, exitDone, "perspective", "reset", "tally", "b", database)
	failed := rowsOf(t, pool, `select event_id::text from rewind.wal where event_type = 'poison'`)[0]
	runCommand(t, exitDone, "perspective", "retry", "tally", "a", "--tenant=other", database)
	runCommand(t, exitDone, "perspective", "skip", "tally", "a", failed, "--tenant=other", "--reason=poisoned", database)
	runCommand(t, exitFailed, "doctor", database) // no live worker folds what is to be retried
}

// doctor and verify see a partition that is not read any more, doctor and verify say what sets it right, and nothing is wrong afterwards,
// though the repair is still to come.
func TestLostPosition(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	exec(t, pool, `delete from rewind.perspective_partitions where wal_partition = 0`)
	exec(t, pool, `update rewind.perspective_cursors set model = '{"n": 7, "same": 1}' where stream_id = rewind.stream_id('t', 'a')`)
	if output := runCommand(t, exitFailed, "doctor", database); !strings.Contains(output, "does not read 1 partition") || !strings.Contains(output, "rewindworker verify tally --repair") {
		t.Error(output)
	}
	output := runCommand(t, exitDone, "verify", "tally", "--repair", database)
	if !strings.Contains(output, "tally: 2 problems") || !strings.Contains(output, `{"n":2}`) || strings.Contains(output, "<nil>") {
		t.Error(output)
	}
	if output := runCommand(t, exitFailed, "verify", "tally", database); !strings.Contains(output, "tally: 1 problem (2 streams, 3 events); 1 stream with a repair to come") {
		t.Error(output)
	}
	runCommand(t, exitDone, "run", "--until-idle", database)
	if output := runCommand(t, exitDone, "verify", "tally", database); output != "tally: well (2 streams, 3 events)\n" {
		t.Error(output)
	}
	if output := runCommand(t, exitDone, "doctor", database); strings.Contains(output, "LOOK") {
		t.Error(output)
	}
}

func TestUsageNamesTheCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"feed", "--follow"}, "Try rewindworker feed --help."},
		{[]string{"feed", "tail", "--nothing"}, "Try rewindworker feed tail --help."},
		{[]string{"nothing"}, "Try rewindworker --help."},
	} {
		if _, notes := runBoth(t, exitUsage, c.args...); !strings.Contains(notes, c.want) {
			t.Errorf("%q: %s", c.args, notes)
		}
	}
	database, _ := newCounted(t)
	if _, notes := runBoth(t, exitFailed, "options", "--perspective=tally", "set", "skew_policy=reject", database); !strings.Contains(notes, `option "skew_policy" is of a tree or the installation, not of a perspective`) {
		t.Error(notes)
	}
}

// What the database says in terms of SQL is said in those of the commands.
func TestHints(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	exec(t, pool, `create view app.seen as select * from lens.tally`)
	nobody := "rewind_test_nobody_" + strings.ToLower(rand.Text()[:8])
	exec(t, pool, `create role `+nobody)
	defer exec(t, pool, `drop role `+nobody)
	asNobody := database + "?role=" + nobody
	if strings.Contains(database, "?") {
		asNobody = database + "&role=" + nobody
	}
	for want, args := range map[string][]string{
		"drop before that what depends on it: view app.seen":              {"perspective", "drop", "tally", database},
		"somebody has to grant this user rewind_reader":                   {"status", asNobody},
		"an apply function takes (jsonb, rewind.event) and returns jsonb": {"perspective", "create", "other", "--tree=t", "--apply=app.nothing", database},
	} {
		if _, notes := runBoth(t, exitFailed, args...); !strings.Contains(notes, want) {
			t.Errorf("%q: %s", args, notes)
		}
	}
}
