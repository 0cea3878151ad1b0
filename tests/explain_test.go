package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

type explained struct {
	Place         int64
	EventID       uuid.UUID
	StreamVersion int64
	LateBy        *time.Duration
	Applied       bool
	Skipped       bool
	Patch         json.RawMessage
	LastSet       []string
	Model         map[string]any
	Error         *string
}

func (w *world) explain(stream string) []explained {
	w.t.Helper()
	rows, err := w.pool.Query(ctxOf(w.t), `
		select place, event_id, stream_version, late_by, applied, skipped, patch, last_set, model, error from rewind.explain_model('p', $1)`, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[explained])
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// Every step is the fold of its prefix, the patches lead from one to the next, and model_as_of finds each of them again.
func TestExplainModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	const events = 30
	var arrived []testEvent
	for i, at := range rand.Perm(events) {
		e := testEvent{at: 1 + at, v: 1 + rand.IntN(20)}
		arrived = append(arrived, e)
		w.append("s", e)
		if i == events/2 {
			w.catchUp()
		}
	}
	happened := slices.SortedFunc(slices.Values(arrived), func(a, b testEvent) int { return a.at - b.at })

	steps := w.explain("s")
	if len(steps) != events {
		t.Fatalf("%d steps, want %d", len(steps), events)
	}
	var values []int
	document := []byte("null")
	setBy := map[string]int{}
	for i, s := range steps {
		values = append(values, happened[i].v)
		if diff := cmp.Diff(chain(values), s.Model); diff != "" || s.Place != int64(i+1) {
			t.Errorf("model after event %d (-want +got):\n%s", i+1, diff)
		}
		document = patched(t, document, s.Patch)
		var model map[string]any
		if err := json.Unmarshal(document, &model); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Model, model); diff != "" {
			t.Errorf("patches up to event %d (-want +got):\n%s", i+1, diff)
		}
		version := slices.Index(arrived, happened[i]) + 1
		newest := slices.MaxFunc(arrived[:version], func(a, b testEvent) int { return a.at - b.at }).at
		late := time.Duration(newest-happened[i].at) * time.Millisecond
		if s.StreamVersion != int64(version) || s.Applied != (version <= events/2+1) || (s.LateBy == nil) != (late == 0) ||
			s.LateBy != nil && (*s.LateBy-late).Abs() >= time.Millisecond { // ids have random bits below
			t.Errorf("event %d: version %d, applied %v, late by %v; want version %d, late by %v", i+1, s.StreamVersion, s.Applied, s.LateBy, version, late)
		}
		for path := range s.Model {
			if i == 0 || !cmp.Equal(steps[i-1].Model[path], s.Model[path]) {
				setBy["/"+path] = i
			}
		}
		if asOf := queryOne[map[string]any](t, w.pool, `select rewind.model_as_of('p', 's', p_event_id => $1)`, s.EventID); !cmp.Equal(asOf, s.Model) {
			t.Errorf("as of event %d: %v, want %v", i+1, asOf, s.Model)
		}
		if asOf := queryOne[map[string]any](t, w.pool, `select rewind.model_as_of('p', 's', p_time => rewind.event_time($1))`, s.EventID); !cmp.Equal(asOf, s.Model) {
			t.Errorf("as of the time of event %d: %v, want %v", i+1, asOf, s.Model)
		}
		known := slices.SortedFunc(slices.Values(arrived[:i+1]), func(a, b testEvent) int { return a.at - b.at })
		want := []int{}
		for _, e := range known {
			want = append(want, e.v)
		}
		if asOf := queryOne[map[string]any](t, w.pool, `select rewind.model_as_of('p', 's', p_version => $1)`, i+1); !cmp.Equal(asOf, chain(want)) {
			t.Errorf("as it was known at version %d: %v, want %v", i+1, asOf, chain(want))
		}
	}
	want := map[string]int{}
	for path := range steps[events-1].Model {
		want["/"+path] = setBy["/"+path]
	}
	got := map[string]int{}
	for i, s := range steps {
		for _, path := range s.LastSet {
			got[path] = i
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("which event last set what (-want +got):\n%s", diff)
	}
}

// patched applies a patch of ours, whose operations also say what was there before.
func patched(t *testing.T, document, patch []byte) []byte {
	t.Helper()
	var operations []map[string]any
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		if o["path"] == "" { // the whole document, which the library knows no operations on
			document = []byte("null")
			if o["op"] != "remove" {
				document, _ = json.Marshal(o["value"])
			}
			continue
		}
		one, _ := json.Marshal([]any{o})
		decoded, err := jsonpatch.DecodePatch(one)
		if err != nil {
			t.Fatal(err)
		}
		if document, err = decoded.Apply(document); err != nil {
			t.Fatalf("%s on %s: %v", one, document, err)
		}
	}
	return document
}

func TestExplainModelOfFailingFold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2, fail: true}, testEvent{at: 30, v: 3})
	steps := w.explain("s")
	if steps[0].Error != nil || steps[0].Model == nil || *steps[1].Error != "event 2 fails" || steps[1].Model != nil || steps[2].Error != nil || steps[2].Patch != nil {
		t.Errorf("%+v", steps)
	}
	wantCode(t, w.pool, "RW016", `select rewind.model_as_of('p', 's')`)
	if before := queryOne[map[string]any](t, w.pool, `select rewind.model_as_of('p', 's', p_version => 1)`); !cmp.Equal(before, chain([]int{1})) {
		t.Errorf("before it failed: %v", before)
	}
	w.catchUp()
	w.exec(`select from rewind.skip_perspective_event('p', 's', $1, 'wrong')`, steps[1].EventID)
	steps = w.explain("s")
	if !steps[1].Skipped || steps[1].Error != nil || string(steps[1].Patch) != "[]" || !cmp.Equal(steps[2].Model, chain([]int{1, 3})) {
		t.Errorf("after the skip: %+v", steps)
	}
}

// What explains folds unguarded: a subtransaction for every event costs a fold in SQL most of its speed.
func TestExplainFoldsUnguarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	const events = 40
	w.append("s", inOrder(events)...)
	w.catchUp()
	for call, want := range map[string]int64{
		`select rewind.model_as_of('p', 's')`:                                              0,
		`select from rewind.explain_model('p', 's')`:                                       0,
		`select from rewind.preview_event('p', 's', '{"type": "e", "payload": {"v": 1}}')`: 0,
		`select from rewind.verify_perspective('p')`:                                       0,
		`select from rewind.check_perspective('p')`:                                        events, // event by event
	} {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `set local track_functions = 'all'`); err != nil {
			t.Fatal(err)
		}
		guarded := func() int64 { // these call the step, the others are called by the executor's aggregates, which nobody counts
			return queryOne[int64](t, tx, `select coalesce(sum(calls), 0)::bigint from pg_stat_xact_user_functions where funcname ~ '^step_'`)
		}
		before := guarded()
		if _, err := tx.Exec(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if got := guarded() - before; got != want {
			t.Errorf("%s takes %d guarded steps, want %d", call, got, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	w.exec(`select from rewind.register_perspective('g', 't')`)
	for _, function := range []string{`rewind.explain_model(%s)`, `rewind.model_as_of(%s)`} {
		wantCode(t, w.pool, "RW006", fmt.Sprintf(`select `+function, `'unknown', 's'`))
		wantCode(t, w.pool, "22023", fmt.Sprintf(`select `+function, `'p', 'unknown'`))
		wantCode(t, w.pool, "22023", fmt.Sprintf(`select `+function, `'p', 's', p_options => '{"tenant": "a"}'`))
	}
	wantCode(t, w.pool, "0A000", `select rewind.model_as_of('g', 's')`)
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.explain_model('g', 's') where patch is null and model is null`); n != 1 {
		t.Errorf("%d events of a perspective in Go", n)
	}
}

// A preview says what then comes true, and writes nothing.
func TestPreviewEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 8, "snapshot_every_n_events": 5}})
	for i := range 12 {
		w.append("s", testEvent{at: 10 * (i + 1), v: i + 1})
	}
	w.catchUp()
	everything := func() string {
		return queryOne[string](t, w.pool, `
			select md5(string_agg(x, '' order by x)) from (
			  select w::text from rewind.wal w union all select c::text from rewind.perspective_cursors c
			  union all select n::text from rewind.perspective_snapshots n union all select s::text from rewind.streams s
			) u(x)`)
	}
	for _, c := range []struct {
		at     int
		way    string
		behind int64
	}{{1000, "live", 0}, {115, "inline", 2}, {45, "rewind", 10}} {
		before := everything()
		event := fmt.Sprintf(`{"event_id": %q, "type": "e", "payload": {"v": 50}}`, at(c.at))
		var way string
		var behind, fold int64
		var model map[string]any
		var patch json.RawMessage
		err := w.pool.QueryRow(t.Context(), `select way, behind, events_to_fold, model, patch from rewind.preview_event('p', 's', $1)`, event).
			Scan(&way, &behind, &fold, &model, &patch)
		if err != nil {
			t.Fatal(err)
		}
		if after := everything(); after != before {
			t.Error("a preview wrote something")
		}
		if way != c.way || behind != c.behind {
			t.Errorf("at %d: %s, %d behind; want %s, %d", c.at, way, behind, c.way, c.behind)
		}
		old := w.cursor("s").Model
		folded := queryOne[int64](t, w.pool, `select coalesce(sum(events_replayed), 0)::bigint from rewind.perspective_rewinds`)
		w.exec(`select from rewind.append_events('t', 's', jsonb_build_array($1::jsonb))`, event)
		w.catchUp()
		if diff := cmp.Diff(w.cursor("s").Model, model); diff != "" {
			t.Errorf("at %d: model (-as it came +preview):\n%s", c.at, diff)
		}
		if replayed := queryOne[int64](t, w.pool, `select coalesce(sum(events_replayed), 0)::bigint from rewind.perspective_rewinds`) - folded; way == "rewind" && replayed != fold {
			t.Errorf("at %d: %d events replayed, %d in the preview", c.at, replayed, fold)
		}
		document, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(patched(t, document, patch), &got); err != nil || !cmp.Equal(got, model) {
			t.Errorf("at %d: the patch %s leads to %v, %v", c.at, patch, got, err)
		}
		if way := queryOne[string](t, w.pool, `select way from rewind.preview_event('p', 's', $1)`, event); way != "duplicate" {
			t.Errorf("at %d, once it is there: %s", c.at, way)
		}
		wantCode(t, w.pool, "RW002", fmt.Sprintf(`select rewind.preview_event('p', 's', '%s')`, strings.Replace(event, `"v": 50`, `"v": 51`, 1)))
	}
	if failure := queryOne[string](t, w.pool, `select error from rewind.preview_event('p', 'new', '{"type": "e", "payload": {"v": 1, "fail": true}}')`); failure != "event 1 fails" {
		t.Error(failure)
	}
	wantCode(t, w.pool, "RW017", `select rewind.preview_event('p', 's', '{"payload": {}}')`)
	wantCode(t, w.pool, "RW004", `select rewind.preview_event('p', 's', '{"type": "e", "time": "2999-01-01T00:00:00Z"}')`)
	w.exec(`select rewind.set_options('{"skew_policy": "quarantine"}', p_tree => 't')`)
	if way := queryOne[string](t, w.pool, `select way from rewind.preview_event('p', 's', '{"type": "e", "time": "2999-01-01T00:00:00Z"}')`); way != "quarantine" {
		t.Error(way)
	}
}
