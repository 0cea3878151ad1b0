package tests

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/worker"
)

// systemEvents are the types, stream keys and payloads in $system, in the order of their arrival.
func (w *world) systemEvents() (types []string, payloads []map[string]any) {
	w.t.Helper()
	rows, err := w.pool.Query(ctxOf(w.t), `
		select w.event_type || ' ' || s.stream_key, w.payload from rewind.wal w join rewind.streams s using (stream_id)
		join rewind.trees t on t.tree_id = w.tree_id where t.tree_name = '$system' order by w.wal_offset`)
	if err != nil {
		w.t.Fatal(err)
	}
	var event string
	var payload json.RawMessage
	if _, err := pgx.ForEachRow(rows, []any{&event, &payload}, func() error {
		var p map[string]any
		types = append(types, event)
		err := json.Unmarshal(payload, &p)
		payloads = append(payloads, p)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return types, payloads
}

func TestRewindIsNarrated(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 3)
	before := w.cursor("s")
	w.catchUp()
	after := w.cursor("s")

	types, payloads := w.systemEvents()
	if diff := cmp.Diff([]string{"StreamRewindStarted t", "PerspectiveRewindStarted p", "PerspectiveRewindCompleted p", "StreamRewindCompleted t"}, types); diff != "" {
		t.Fatal(diff)
	}
	for i, keys := range [][]string{
		{"perspective_names", "started_at", "stream_id", "stream_key"},
		{"has_snapshot", "perspective_name", "replay_from_snapshot_event_id", "started_at", "stream_id", "stream_key", "triggering_event_id"},
		{"completed_at", "events_replayed", "final_event_id", "perspective_name", "started_at", "stream_id", "stream_key", "triggering_event_id"},
		{"completed_at", "perspective_names", "started_at", "stream_id", "stream_key", "total_events_replayed"},
	} {
		got := []string{}
		for k := range payloads[i] {
			got = append(got, k)
		}
		slices.Sort(got)
		if diff := cmp.Diff(keys, got); diff != "" {
			t.Errorf("payload of %s (-want +got):\n%s", types[i], diff)
		}
	}
	if got := payloads[2]; got["events_replayed"] != 21.0 || got["final_event_id"] != after.LastEventID.String() || got["triggering_event_id"] != before.Trigger.String() {
		t.Errorf("PerspectiveRewindCompleted: %v", got)
	}
	if got := payloads[3]; got["total_events_replayed"] != 21.0 || !cmp.Equal(got["perspective_names"], []any{"p"}) {
		t.Errorf("StreamRewindCompleted: %v", got)
	}
	metadata := queryOne[string](t, w.pool, `select distinct metadata::text from rewind.wal w join rewind.trees using (tree_id) where tree_name = '$system'`)
	if metadata != `{"audit": "exclude", "tenants": "all", "principal": "system"}` {
		t.Errorf("metadata %s", metadata)
	}

	// The patch of the history turns the model before into the model after.
	patch := queryOne[string](t, w.pool, `select patch::text from rewind.perspective_rewinds`)
	want := jsonOf(t, []any{
		map[string]any{"op": "replace", "path": "/count", "old": before.Model["count"], "value": after.Model["count"]},
		map[string]any{"op": "replace", "path": "/digest", "old": before.Model["digest"], "value": after.Model["digest"]},
	})
	if !queryOne[bool](t, w.pool, `select $1::jsonb = $2::jsonb`, want, patch) {
		t.Errorf("patch %s, want %s", patch, want)
	}
}

// Two perspectives rewound at the same time on one stream are bracketed once.
func TestStreamBracket(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	w.exec(`select from rewind.create_perspective('q', 't', 'app.chain(jsonb, rewind.event)', p_options => '{"debounce_window": "0s"}')`)
	w.exec(`select from rewind.apply_perspective_batch('q', 0)`)
	w.exec(`select from rewind.request_perspective_rewind('q', 's')`)
	w.exec(repairSQL)
	w.exec(`select app.begin_repair()`)
	w.exec(`select app.begin_repair()`)
	if n := queryOne[int64](t, w.pool, `select count(*) from app.repairs`); n != 2 {
		t.Fatalf("%d repairs claimed, want 2", n)
	}
	for queryOne[int64](t, w.pool, `select count(*) from app.repairs`) > 0 {
		w.exec(`select app.step_repair(1)`)
		w.exec(`select app.step_repair(0)`)
	}
	types, payloads := w.systemEvents()
	slices.Sort(types[1:5])
	want := []string{"StreamRewindStarted t", "PerspectiveRewindCompleted p", "PerspectiveRewindCompleted q", "PerspectiveRewindStarted p", "PerspectiveRewindStarted q", "StreamRewindCompleted t"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	if got := payloads[5]; !cmp.Equal(got["perspective_names"], []any{"p", "q"}) || got["total_events_replayed"] != 42.0 {
		t.Errorf("StreamRewindCompleted: %v", got)
	}
}

// A publish that fails never aborts the repair.
func TestFailedPublishAbortsNothing(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	w.exec(`alter table rewind.wal add constraint no_system check (event_type not like '%Rewind%')`)
	w.catchUp()
	w.checkSettled()
	if types, _ := w.systemEvents(); len(types) > 0 {
		t.Errorf("published %v", types)
	}
}

func TestInlineRepairsAreNarratedOnRequest(t *testing.T) {
	t.Parallel()
	for _, narrate := range []bool{false, true} {
		w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 256, "narrate_inline_rewinds": narrate}})
		w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
		w.apply()
		w.append("s", testEvent{at: 15, v: 3})
		w.apply()
		w.checkSettled()
		types, _ := w.systemEvents()
		history := queryOne[[]string](t, w.pool, `select coalesce(array_agg(format('%s %s %s', replay_source, events_replayed, events_behind)), '{}') from rewind.perspective_rewinds`)
		if !narrate && (len(types) > 0 || len(history) > 0) {
			t.Errorf("narrated without being asked: %v %v", types, history)
		}
		if narrate && (!cmp.Equal(types, []string{"PerspectiveRewindStarted p", "PerspectiveRewindCompleted p"}) || !cmp.Equal(history, []string{"full 3 1"})) {
			t.Errorf("narrated %v, history %v", types, history)
		}
	}
}

// A worker logs narrated repairs as it logs rewinds, of perspectives in SQL and in Go.
func TestNarratedRepairsAreLogged(t *testing.T) {
	t.Parallel()
	options := map[string]any{"inline_rewind_events": 256, "narrate_inline_rewinds": true}
	w := newWorld(t, worldOptions{options: options})
	var log entries
	serve := func() {
		t.Helper()
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		register(t, k, chainPerspective(options))
		if err := k.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	serve()
	if n := len(log.withID(52)) + len(log.withID(53)); n > 0 {
		t.Errorf("%d entries of rewinds where nothing was late", n)
	}
	w.append("s", testEvent{at: 15, v: 3})
	serve()

	ids := texts(t, w.pool, `select event_id::text from rewind.read_stream('t', 's')`)
	for id, want := range map[int64]map[string]any{
		52: {"cursor_event_id": ids[2], "trigger_event_id": ids[1], "events_behind": int64(1)},
		53: {"events_replayed": int64(3), "replay_source": "full"},
	} {
		found := log.withID(id)
		perspectives := map[any]bool{}
		for _, e := range found {
			perspectives[e.attrs["perspective_name"]] = true
			if _, ok := e.attrs["duration_ms"].(int64); ok != (id == 53) {
				t.Errorf("log entry %d has a duration: %t", id, ok)
			}
			want["category"], want["stream_key"] = "PerspectiveWorker", "s"
			for key, value := range want {
				if e.attrs[key] != value {
					t.Errorf("log entry %d: %s is %v, want %v", id, key, e.attrs[key], value)
				}
			}
		}
		if len(found) != 2 || !perspectives["p"] || !perspectives["g"] {
			t.Errorf("%d log entries %d, of %v, want one of each perspective", len(found), id, perspectives)
		}
	}
}

func TestJSONPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for _, test := range []struct{ old, new, want string }{
		{`{"a": 1}`, `{"a": 1}`, `[]`},
		{`{"a": 1, "b": {"c": [1, 2]}}`, `{"b": {"c": [1, 3, 4], "d~/": null}}`,
			`[{"op": "remove", "path": "/a", "old": 1}, {"op": "replace", "path": "/b/c/1", "old": 2, "value": 3},
			  {"op": "add", "path": "/b/c/2", "value": 4}, {"op": "add", "path": "/b/d~0~1", "value": null}]`},
		{`{"l": [1, 2, 3]}`, `{"l": [1]}`, `[{"op": "remove", "path": "/l/2", "old": 3}, {"op": "remove", "path": "/l/1", "old": 2}]`},
		{`{"a": 1}`, `[1]`, `[{"op": "replace", "path": "", "old": {"a": 1}, "value": [1]}]`},
	} {
		if got := queryOne[string](t, w.pool, `select rewind._json_patch($1, $2)::text`, test.old, test.new); !queryOne[bool](t, w.pool, `select $1::jsonb = $2::jsonb`, test.want, got) {
			t.Errorf("patch from %s to %s is %s, want %s", test.old, test.new, got, test.want)
		}
	}
	if got := queryOne[string](t, w.pool, `select rewind._json_patch(null, '{"a": 1}')::text || rewind._json_patch('{"a": 1}', null)`); got != `[{"op": "add", "path": "", "value": {"a": 1}}][{"op": "remove", "old": {"a": 1}, "path": ""}]` {
		t.Errorf("patches from and to nothing: %s", got)
	}
}

func TestSkipPerspectiveEvent(t *testing.T) {
	t.Parallel()
	id := func(w *world, v int) string {
		return queryOne[string](t, w.pool, `select event_id::text from rewind.wal where (payload ->> 'v')::int = $1`, v)
	}
	skip := `select status from rewind.skip_perspective_event('p', 's', $1, 'bad data')`

	t.Run("above applied_version it counts at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, worldOptions{})
		w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2, fail: true}, testEvent{at: 30, v: 3})
		w.apply()
		w.exec(skip, id(w, 2))
		w.catchUp()
		c := w.cursor("s")
		if diff := cmp.Diff(chain([]int{1, 3}), c.Model); diff != "" || c.Status != 2 || c.EventsApplied != 3 {
			t.Errorf("%+v\n%s", c, diff)
		}
		if found := w.verify(); len(found) > 0 {
			t.Error(found)
		}
	})
	t.Run("below it counts from the completion that leaves it out", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, worldOptions{})
		w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2}, testEvent{at: 30, v: 3})
		w.apply()
		w.exec(skip, id(w, 2))
		if c := w.cursor("s"); c.Status != 32 || !cmp.Equal(chain([]int{1, 2, 3}), c.Model) {
			t.Errorf("before the rewind: %+v", c)
		}
		w.checkSound()
		w.catchUp()
		if c := w.cursor("s"); c.Status != 2 || !cmp.Equal(chain([]int{1, 3}), c.Model) {
			t.Errorf("after the rewind: %+v", c)
		}
		if found := w.verify(); len(found) > 0 {
			t.Error(found)
		}
		w.append("s", testEvent{at: 15, v: 4})
		w.catchUp()
		if c := w.cursor("s"); !cmp.Equal(chain([]int{1, 4, 3}), c.Model) {
			t.Errorf("a later rewind brought it back: %+v", c)
		}
	})
	t.Run("a repair under way loses its lock", func(t *testing.T) {
		t.Parallel()
		w := lateWorld(t, 20, 10)
		token, _, _ := w.claim()
		r := w.replay(token, false)
		w.exec(skip, id(w, 1000))
		wantCode(t, w.pool, "RW008", completeSQL, r.args()...)
		w.catchUp()
		if found := w.verify(); len(found) > 0 {
			t.Error(found)
		}
	})
	t.Run("refuses what it can't skip", func(t *testing.T) {
		t.Parallel()
		w := lateWorld(t, 2, 1)
		wantCode(t, w.pool, "22023", skip, at(1).String())
		wantCode(t, w.pool, "22023", `select from rewind.skip_perspective_event('p', 's', $1, '')`, id(w, 1))
		wantCode(t, w.pool, "RW013", `select from rewind.skip_perspective_event('p', 'nobody', $1, 'x')`, id(w, 1))
		wantCode(t, w.pool, "RW006", `select from rewind.skip_perspective_event('q', 's', $1, 'x')`, id(w, 1))
	})
}

func TestSnapshotFunctions(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 250, 120)
	has := func() bool { return queryOne[bool](t, w.pool, `select rewind.has_perspective_snapshots('p', 's')`) }
	if !has() {
		t.Error("no snapshot after 250 events")
	}
	for _, before := range []int{5000, 2005} {
		id := at(before)
		got := queryOne[bool](t, w.pool, `select event_id < $1 and events_applied <= $2 from rewind.load_perspective_snapshot('p', 's', $1)`, id, before/10)
		if !got {
			t.Errorf("the snapshot before %d is not before it", before)
		}
	}
	w.exec(`select rewind.prune_perspective_snapshots('p', 's', 1)`)
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.perspective_snapshots`); n != 1 {
		t.Errorf("%d snapshots after pruning to 1", n)
	}
	w.exec(`select rewind.prune_perspective_snapshots('p', 's')`)
	if has() {
		t.Error("snapshots after deleting all")
	}
	w.catchUp()
	w.checkSettled()
}
