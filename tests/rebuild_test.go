package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

// loadSQL appends events round the streams, one in ten late. Its folds count and digest, and say which version they are.
const loadSQL = `
create function app.load(p_from int, p_to int, p_streams int) returns void language sql as $$
  select from (
    select array_agg('s' || n % p_streams order by n) as streams,
      array_agg(('019' || lpad(to_hex(2684354560 + case when n % 10 = 0 then 2 * n - 2 * p_streams - 1 else 2 * n end), 9, '0') || '70008000000000000000')::uuid
        order by n) as ids,
      array_agg('happened'::text order by n) as types, array_agg(jsonb_build_object('v', n) order by n) as payloads
    from generate_series(p_from, p_to) n
  ) e
  cross join lateral (select count(*) from rewind.append_batch('t', e.streams, e.ids, e.types, e.payloads)) a
$$;
create function app.marked_1(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
  select jsonb_build_object('gen', 1, 'n', coalesce((model ->> 'n')::int, 0) + 1, 'digest', md5(coalesce(model ->> 'digest', '') || (event.payload ->> 'v')))
$$;
create function app.marked_2(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
  select jsonb_build_object('gen', 2, 'n', coalesce((model ->> 'n')::int, 0) + 1, 'digest', md5(coalesce(model ->> 'digest', '') || (event.payload ->> 'v')))
$$;`

// newLoaded makes a tree of so many events in so many streams, and a perspective "m" over it that has read them all.
func newLoaded(t testing.TB, events, streams int, options map[string]any) *world {
	t.Helper()
	w := newWorld(t, worldOptions{partitions: 4})
	w.exec(`select rewind.drop_perspective('p')`)
	w.exec(loadSQL)
	const chunk = 20_000
	for from := 1; from <= events; from += chunk {
		w.exec(`select app.load($1, $2, $3)`, from, min(from+chunk-1, events), streams)
	}
	w.exec(`select from rewind.create_perspective('m', 't', 'app.marked_1(jsonb, rewind.event)', p_options => $1)`, options)
	w.exec(`call rewind.catch_up('m')`)
	return w
}

func (w *world) active(perspective string) int {
	w.t.Helper()
	return queryOne[int](w.t, w.pool, `select active_generation from rewind.perspectives where perspective_name = $1`, perspective)
}

func (w *world) rebuildState(perspective string) string {
	w.t.Helper()
	return queryOne[string](w.t, w.pool, `
		select coalesce((select state from rewind.perspective_rebuilds where perspective_name = $1 order by rebuild_id desc limit 1), 'none')`, perspective)
}

// waitForRebuild waits until the last rebuild of a perspective has ended, and wants it completed.
func (w *world) waitForRebuild(perspective string) {
	w.t.Helper()
	eventually(w.t, func() bool {
		state := w.rebuildState(perspective)
		return state != "none" && state != "running"
	})
	if state := w.rebuildState(perspective); state != "completed" {
		w.t.Fatalf("the rebuild is %s: %s", state, queryOne[string](w.t, w.pool, `
			select concat(error, failed_streams) from rewind.perspective_rebuilds where perspective_name = $1 order by rebuild_id desc limit 1`, perspective))
	}
}

// verified wants a generation of a perspective (0: the active one) to be the fold of its log.
func (w *world) verified(perspective string, generation int) {
	w.t.Helper()
	options := map[string]any{}
	if generation != 0 {
		options["generation_id"] = generation
	}
	if n := queryOne[int](w.t, w.pool, `select count(*) from rewind.verify_perspective($1, p_options => $2)`, perspective, options); n > 0 {
		w.t.Errorf("verify_perspective(%s) of generation %d: %d problems, as %s", perspective, generation, n, queryOne[string](w.t, w.pool, `
			select v::text from rewind.verify_perspective($1, p_options => $2) v limit 1`, perspective, options))
	}
}

// digest of a generation's models, 0 for what the lens shows.
func (w *world) digest(generation int) string {
	w.t.Helper()
	return queryOne[string](w.t, w.pool, `
		select md5(string_agg(concat_ws(' ', stream_id, applied_version, events_applied, model - 'gen'), ',' order by stream_id))
		from rewind.perspective_cursors where generation_id = $1`, generation)
}

// shown is what a reader sees of a stream.
type shown struct {
	Stream string
	Events int64
	Gen    int
}

func readLens(ctx context.Context, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}) ([]shown, error) {
	rows, err := db.Query(ctx, `select stream_key, events_applied, (model ->> 'gen')::int from lens.m order by stream_key`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[shown])
}

// poll reads the lens until ctx ends, and compares with what it read before: no stream may go, none go back, and all be of one generation.
// repeatable: two reads in a transaction are the same.
func (w *world) poll(ctx context.Context, repeatable bool) (polls int, err error) {
	seen := map[string]int64{}
	isolation := pgx.ReadCommitted
	if repeatable {
		isolation = pgx.RepeatableRead
	}
	for ctx.Err() == nil {
		err := pgx.BeginTxFunc(context.WithoutCancel(ctx), w.pool, pgx.TxOptions{IsoLevel: isolation}, func(tx pgx.Tx) error {
			models, err := readLens(context.WithoutCancel(ctx), tx)
			if err != nil {
				return err
			}
			if repeatable {
				again, err := readLens(context.WithoutCancel(ctx), tx)
				if err != nil {
					return err
				}
				if !slices.Equal(models, again) {
					return errors.New("two reads of one snapshot differ")
				}
			}
			if len(models) < len(seen) {
				return fmt.Errorf("%d streams after %d", len(models), len(seen))
			}
			for _, m := range models {
				if m.Events < seen[m.Stream] {
					return fmt.Errorf("stream %s went back from %d to %d events", m.Stream, seen[m.Stream], m.Events)
				}
				if m.Gen != models[0].Gen {
					return fmt.Errorf("stream %s is of version %d, others of %d", m.Stream, m.Gen, models[0].Gen)
				}
				seen[m.Stream] = m.Events
			}
			polls++
			return nil
		})
		if err != nil {
			return polls, err
		}
	}
	return polls, nil
}

// Readers of the lens see one whole generation at any moment, before, in and after a rebuild under appends of which one in ten is late, and a
// rollback; models of both generations are the folds of the log afterwards. With REWIND_TEST_FULL_SIZE: of a million events.
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	events, streams := 20_000, 1_000
	if fullSize {
		events, streams = 1_000_000, 10_000
	}
	for name, options := range map[string]map[string]any{
		"inline":  {"debounce_window": "50ms", "max_debounce_window": "200ms", "rewind_share": 1},
		"rewinds": {"inline_rewind_events": 0, "debounce_window": "50ms", "max_debounce_window": "200ms", "rewind_share": 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoaded(t, events, streams, options)
			stop := start(t, newWorker(t, w, worker.Config{}))
			ctx, cancel := context.WithCancel(t.Context())
			var beside sync.WaitGroup
			var appended atomic.Int64
			appended.Store(int64(events))
			beside.Go(func() {
				for ctx.Err() == nil {
					to := appended.Load() + 50
					if _, err := w.pool.Exec(t.Context(), `select app.load($1, $2, $3)`, to-49, to, streams); err != nil {
						t.Error(err)
						return
					}
					appended.Store(to)
				}
			})
			for _, repeatable := range []bool{false, true} {
				beside.Go(func() {
					polls, err := w.poll(ctx, repeatable)
					if err != nil {
						t.Errorf("after %d polls (repeatable read: %v): %v", polls, repeatable, err)
					}
				})
			}
			first := w.active("m")
			w.exec(`select from rewind.create_perspective('m', 't', 'app.marked_2(jsonb, rewind.event)', p_version => 2)`)
			w.waitForRebuild("m")
			second := w.active("m")
			if second == first {
				t.Error("the higher version is not shown")
			}
			w.exec(`select from rewind.rollback_perspective('m')`)
			w.waitForRebuild("m")
			if got := w.active("m"); got != first {
				t.Errorf("after the rollback generation %d is shown, not %d", got, first)
			}
			cancel()
			beside.Wait()
			if err := stop(); err != nil {
				t.Error(err)
			}
			runUntilIdle(t, w, worker.Config{})
			eventually(t, func() bool {
				runUntilIdle(t, w, worker.Config{})
				return queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2`) == 0
			})
			w.verified("m", first)
			w.verified("m", second)
			if w.digest(first) != w.digest(second) {
				t.Error("the digests of the generations differ")
			}
			if got := queryOne[int64](t, w.pool, `select sum(events_applied)::bigint from lens.m`); got != appended.Load() {
				t.Errorf("%d events are in the models, %d were appended", got, appended.Load())
			}
		})
	}
}

// A counting fold shows the exact number in all modes, folded in SQL and in Go, by one worker or several; nothing at all is rebuilt at once.
func TestRebuildModes(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 8} {
		t.Run(fmt.Sprint(workers, " at once"), func(t *testing.T) {
			t.Parallel()
			w := newLoaded(t, 2000, 100, nil)
			k := newWorker(t, w, worker.Config{Concurrency: workers, BatchSize: 100})
			register(t, k, worker.Perspective[map[string]int]{Name: "g", Tree: "t", Apply: func(m map[string]int, _ rewind.Event) (map[string]int, error) {
				return map[string]int{"n": m["n"] + 1}, nil
			}})
			if err := k.RunUntilIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			digest := w.digest(w.active("m"))
			for _, perspective := range []string{"m", "g"} {
				for _, request := range []worker.Rebuild{
					{Mode: worker.BlueGreen},
					{Mode: worker.InPlace},
					{Mode: worker.SelectedStreams, Streams: []string{"s1", "s2"}},
					{Mode: worker.BlueGreen},
				} {
					before := w.active(perspective)
					// What the log doesn't say is in no rebuilt model.
					w.exec(`update rewind.perspective_cursors c set model = '{"n": -1}' from rewind.streams s where s.stream_id = c.stream_id
						and stream_key = 's1' and generation_id = $1`, before)
					var shares []float64
					request.Perspective, request.Progress = perspective, func(p worker.RebuildProgress) { shares = append(shares, p.Share) }
					got, err := k.Rebuild(t.Context(), request)
					if err != nil {
						t.Fatalf("%s of %s: %v", request.Mode, perspective, err)
					}
					want := worker.RebuildResult{PerspectiveName: perspective, Mode: request.Mode, State: "completed", Streams: 100, Events: 2000,
						Duration: got.Duration, FailedStreams: []worker.FailedStream{}}
					if request.Mode == worker.SelectedStreams {
						want.Streams, want.Events = 2, 40
					}
					if diff := cmp.Diff(want, got); diff != "" || got.Duration < 0 {
						t.Errorf("result in %v (-want +got):\n%s", got.Duration, diff)
					}
					if !slices.IsSorted(shares) {
						t.Errorf("progress goes back: %v", shares)
					}
					if (w.active(perspective) != before) != (request.Mode == worker.BlueGreen) {
						t.Errorf("after %s generation %d is shown, before it was %d", request.Mode, w.active(perspective), before)
					}
					if n := queryOne[int](t, w.pool, `
						select count(*) from rewind.perspective_cursors where generation_id = $1 and (model ->> 'n')::int = 20`, w.active(perspective)); n != 100 {
						t.Errorf("after %s %d of 100 streams of %s have counted 20 events", request.Mode, n, perspective)
					}
					w.verified(perspective, 0)
				}
			}
			if got := w.digest(w.active("m")); got != digest {
				t.Error("the digest of the models is another one after the rebuilds")
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		w := newLoaded(t, 0, 1, nil)
		w.exec(`select from rewind.create_perspective('none', 't', 'app.marked_1(jsonb, rewind.event)', array['never'])`)
		w.append("one", testEvent{at: 1, v: 1})
		for perspective, streams := range map[string]int64{"m": 1, "none": 0} {
			for _, mode := range []string{worker.BlueGreen, worker.InPlace} {
				got, err := newWorker(t, w, worker.Config{}).Rebuild(t.Context(), worker.Rebuild{Perspective: perspective, Mode: mode})
				if err != nil || got.State != "completed" || got.Streams != streams || got.Events != streams {
					t.Errorf("%s of %s: %+v, %v; want %d streams", mode, perspective, got, err, streams)
				}
			}
		}
	})
}

// Perspectives that are rebuilt side by side are both exact, also one that folds few of the events.
func TestRebuildSideBySide(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 2000, 100, nil)
	w.exec(`
		select count(*)
		from (select jsonb_agg(jsonb_build_object('type', 'rare', 'payload', jsonb_build_object('v', n))) as events from generate_series(1, 3) n) e
		cross join lateral rewind.append_events('t', 's7', e.events)`)
	w.exec(`select from rewind.create_perspective('rare', 't', 'app.marked_1(jsonb, rewind.event)', array['rare'])`)
	var beside sync.WaitGroup
	for perspective, events := range map[string]int64{"m": 2003, "rare": 3} {
		k := newWorker(t, w, worker.Config{Concurrency: 2, BatchSize: 100})
		beside.Go(func() {
			got, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: perspective})
			if err != nil || got.State != "completed" || got.Events != events {
				t.Errorf("%s: %+v, %v; want %d events", perspective, got, err, events)
			}
		})
	}
	beside.Wait()
	w.verified("m", 0)
	w.verified("rare", 0)
}

// A stream that fails makes the rebuild failed, with the list of those; the lens shows what it did. When the cause is gone it goes.
func TestRebuildFailingStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 2, options: map[string]any{"retry_backoff": "1m"}})
	w.append("good", testEvent{at: 10, v: 1})
	w.append("bad", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2, fail: true})
	runFailing := func(mode string, streams ...string) worker.RebuildResult {
		t.Helper()
		got, err := newWorker(t, w, worker.Config{}).Rebuild(t.Context(), worker.Rebuild{Perspective: "p", Mode: mode, Streams: streams})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		return got
	}
	w.apply()
	active := w.active("p")
	for mode, streams := range map[string][]string{worker.BlueGreen: nil, worker.InPlace: nil, worker.SelectedStreams: {"bad"}} {
		got := runFailing(mode, streams...)
		if got.State != "failed" || got.Error != "1 streams failed" || len(got.FailedStreams) != 1 || got.FailedStreams[0].StreamKey != "bad" ||
			got.FailedStreams[0].Error != "event 2 fails" {
			t.Errorf("%s: %+v; want one failed stream", mode, got)
		}
		if got := w.active("p"); got != active {
			t.Errorf("%s: generation %d is shown instead of %d", mode, got, active)
		}
	}
	w.exec(`select from rewind.abort_perspective_rebuild('p')`)
	wantCode(t, w.pool, "22023", `select from rewind.abort_perspective_rebuild('p')`)
	event := queryOne[[16]byte](t, w.pool, `select error_event_id from rewind.perspective_cursors where error is not null limit 1`)
	w.exec(`select from rewind.skip_perspective_event('p', 'bad', $1, 'a test')`, event)
	w.catchUp()
	for mode, streams := range map[string][]string{worker.BlueGreen: nil, worker.InPlace: nil, worker.SelectedStreams: {"bad"}} {
		if got := runFailing(mode, streams...); got.State != "completed" {
			t.Errorf("%s without the event: %+v", mode, got)
		}
		w.verified("p", 0)
	}
}

// rebuildProgram builds rewindworker.
func rebuildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rewindworker")
	run(t, "go", "build", "-o", program, "../cmd/rewindworker")
	return program
}

// A rebuild that is killed goes on where it was: nothing is folded twice. Beside a running one the second is told so.
func TestRebuildKilled(t *testing.T) {
	t.Parallel()
	const events = 20_000
	program := rebuildProgram(t)
	w := newLoaded(t, events, 1000, nil)
	w.exec(`create function app.waiting(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		begin
		  if event.payload ->> 'v' = '999' then perform pg_advisory_xact_lock_shared(4711); end if;
		  return app.marked_2(model, event);
		end $$`)
	w.exec(`select from rewind.create_perspective('m', 't', 'app.waiting(jsonb, rewind.event)', p_version => 2)`)
	command := func(args ...string) *exec.Cmd {
		return exec.Command(program, append([]string{"--database-url", w.pool.Config().ConnString(), "perspective", "rebuild", "m", "--workers", "2"}, args...)...)
	}
	built := func() int64 {
		return queryOne[int64](t, w.pool, `
			select sum(t.events_built)::bigint from rewind.perspective_partitions t
			join rewind.perspective_generations g on g.generation_id = t.generation_id and g.version = 2`)
	}
	gate := begin(t, w.pool, pgx.TxOptions{}) // at which the fold of one stream waits
	if _, err := gate.Exec(t.Context(), `select pg_advisory_xact_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	first := startProcess(t, command())
	eventually(t, func() bool { return built() > 0 })
	if out, err := command().CombinedOutput(); err == nil || !strings.Contains(string(out), "already running") {
		t.Errorf("a second rebuild ends with %v: %s", err, out)
	}
	first.signal(t, syscall.SIGKILL)
	<-first.exited
	done := built()
	commit(t, gate)
	if done == 0 || done == events {
		t.Fatalf("%d of %d events were built when the rebuild was killed", done, events)
	}
	out, err := command("--json", "--verify").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var result struct {
		State           string
		Streams, Events int64
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	if result.State != "completed" || result.Streams != 1000 || result.Events != events {
		t.Errorf("result: %s", out)
	}
	if again := built() - events; again != 0 {
		t.Errorf("%d events were built again, of %d that were built before", again, done)
	}
	w.verified("m", 0)
}

// Two versions in Go, each known to its own worker, are folded side by side while the next is rolled out; the older worker may be started
// again, and its generation is there for a rollback.
func TestRebuildRollingDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 2})
	version := func(version int) *worker.Worker {
		k := newWorker(t, w, worker.Config{})
		register(t, k, worker.Perspective[map[string]int]{Name: "g", Tree: "t", Version: version, Apply: func(m map[string]int, _ rewind.Event) (map[string]int, error) {
			return map[string]int{"n": m["n"] + 1, "version": version}, nil
		}})
		return k
	}
	for i := range 40 {
		w.append(fmt.Sprint("s", i%10), testEvent{at: 100 - i, v: i})
	}
	stopOld := start(t, version(1))
	models := func(version int) (n int) {
		return queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors c
			join rewind.perspective_generations g using (generation_id) where g.perspective_name = 'g' and model ->> 'version' = $1::int::text`, version)
	}
	eventually(t, func() bool { return models(1) == 10 })
	stopNew := start(t, version(2))
	w.waitForRebuild("g")
	w.append("s0", testEvent{at: 5, v: 1})
	w.append("new", testEvent{at: 5, v: 1})
	eventually(t, func() bool { return models(1) == 11 && models(2) == 11 })
	if err := stopOld(); err != nil {
		t.Error(err)
	}
	stopOld = start(t, version(1))
	if got := queryOne[int](t, w.pool, `select count(*) from lens.g where model ->> 'version' = '2'`); got != 11 {
		t.Errorf("the lens shows %d models of version 2, not 11", got)
	}
	w.append("newer", testEvent{at: 5, v: 1})
	eventually(t, func() bool { return models(1) == 12 && models(2) == 12 })
	w.exec(`select from rewind.rollback_perspective('g')`)
	w.waitForRebuild("g")
	if got := queryOne[int](t, w.pool, `select count(*) from lens.g where model ->> 'version' = '1'`); got != 12 {
		t.Errorf("after the rollback the lens shows %d models of version 1, not 12", got)
	}
	for _, stop := range []func() error{stopOld, stopNew} {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	w.verified("g", 0)
}

// A swap of a perspective in Go reads what is left in its own transaction, however fast others append.
func TestRebuildGoUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 4})
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	stopWriting := w.write(t, 4)
	if _, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: "g"}); err != nil {
		t.Error(err)
	}
	got, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: "g"})
	stopWriting()
	if err != nil || got.State != "completed" {
		t.Fatalf("%+v, %v", got, err)
	}
	settle(t, w, k)
	w.exec(`call rewind.catch_up('p')`)
	if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
		t.Errorf("cursors (-SQL +Go):\n%s", diff)
	}
}

// An append that was open when the generations were swapped, and committed after it, is in both.
func TestSwapBesideOpenAppend(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, nil)
	first := w.active("m")
	w.exec(`select from rewind.begin_perspective_rebuild('m')`)
	second := queryOne[int](t, w.pool, `select max(generation_id) from rewind.perspective_generations`)
	for partition := range 4 {
		w.exec(`select from rewind.apply_perspective_batch('m', $1, p_generation => $2)`, partition, second)
	}
	tx := begin(t, w.pool, pgx.TxOptions{})
	appendEvents(t, tx, "s1", testEvent{at: 1, v: 1})
	if state := queryOne[string](t, w.pool, `select state from rewind.finish_perspective_rebuild('m')`); state != "completed" {
		t.Fatalf("the swap beside an open append is %s", state)
	}
	commit(t, tx)
	w.exec(`call rewind.catch_up('m')`)
	for partition := range 4 {
		w.exec(`select from rewind.apply_perspective_batch('m', $1, p_generation => $2)`, partition, first)
	}
	runUntilIdle(t, w, worker.Config{})
	w.verified("m", first)
	w.verified("m", second)
	if w.digest(first) != w.digest(second) {
		t.Error("the digests of the generations differ")
	}
}

// A swap waits for streams that are behind what the lens shows and for who holds what it needs.
func TestSwapWaits(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, map[string]any{"inline_rewind_events": 0})
	w.exec(`select from rewind.begin_perspective_rebuild('m', p_options => '{"hold": true}')`)
	second := queryOne[int](t, w.pool, `select max(generation_id) from rewind.perspective_generations`)
	finish := func() string {
		t.Helper()
		return queryOne[string](t, w.pool, `select concat_ws(' ', state, waits_for) from rewind._finish_rebuild(
			(select max(rebuild_id) from rewind.perspective_rebuilds))`)
	}
	if got := finish(); got != "running events" {
		t.Errorf("before it is built: %s", got)
	}
	for partition := range 4 {
		w.exec(`select from rewind.apply_perspective_batch('m', $1, p_generation => $2)`, partition, second)
	}
	if got := finish(); got != "running release" {
		t.Errorf("while it is held: %s", got)
	}
	w.exec(`update rewind.perspective_rebuilds set held = false`)

	w.append("s1", testEvent{at: 1, v: 1}) // late in both, and repaired in the one that is shown
	w.exec(`call rewind.catch_up('m')`)
	if got := finish(); got != "running streams that are behind" {
		t.Errorf("while a stream is behind: %s", got)
	}
	token := queryOne[int64](t, w.pool, `select token from rewind.claim_perspective_rewinds('w')`)
	if got := queryOne[int](t, w.pool, `select generation_id from rewind.perspective_stream_locks where token = $1`, token); got != second {
		t.Errorf("the due rewind is of generation %d", got)
	}
	w.exec(`delete from rewind.perspective_stream_locks`)

	holder := begin(t, w.pool, pgx.TxOptions{})
	if _, err := holder.Exec(t.Context(), `select from rewind.perspective_partitions where generation_id = $1 for update`, second); err != nil {
		t.Fatal(err)
	}
	if got := finish(); got != "running locks" {
		t.Errorf("while another session holds the partitions: %s", got)
	}
	commit(t, holder)

	k := newWorker(t, w, worker.Config{})
	stop := start(t, k)
	w.waitForRebuild("m")
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.verified("m", 0)
}

// An event that is skipped while two generations are kept is left out of both.
func TestSkipAcrossGenerations(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, nil)
	first := w.active("m")
	k := newWorker(t, w, worker.Config{})
	if _, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: "m"}); err != nil {
		t.Fatal(err)
	}
	event := queryOne[[16]byte](t, w.pool, `select event_id from rewind.wal join rewind.streams using (stream_id) where stream_key = 's1' order by event_id offset 2 limit 1`)
	w.exec(`select from rewind.skip_perspective_event('m', 's1', $1, 'a test')`, event)
	w.verified("m", first)
	w.verified("m", 0)
	w.exec(`call rewind.catch_up('m')`)
	w.verified("m", first) // begun anew there
	eventually(t, func() bool {
		runUntilIdle(t, w, worker.Config{})
		return queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2`) == 0
	})
	w.verified("m", first)
	w.verified("m", 0)
	for _, generation := range []int{first, w.active("m")} {
		if n := queryOne[int](t, w.pool, `select (model ->> 'n')::int from rewind.perspective_cursors join rewind.streams using (stream_id)
			where stream_key = 's1' and generation_id = $1`, generation); n != 9 {
			t.Errorf("generation %d counts %d events of 10 of which one is skipped", generation, n)
		}
	}
}

// A version that mends a failing fold is shown although a stream of the version before is parked with a skip that it never left out; the
// new one leaves it out then. A repair of the stream that was under way, and has folded the event, is lost.
func TestSwapTakesPendingSkipsAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"max_attempts": 1}})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	w.append("other", testEvent{at: 10, v: 1})
	w.apply()
	w.append("s", testEvent{at: 30, v: 3, fail: true})
	w.apply()
	w.exec(`select from rewind.skip_perspective_event('p', 's', (
		select event_id from rewind.wal join rewind.streams using (stream_id) where stream_key = 's' order by event_id limit 1), 'a test')`)
	if pending := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_skips where not effective`); pending != 1 {
		t.Fatalf("%d skips are pending", pending)
	}
	w.exec(strings.NewReplacer("chain(", "mended(", "? 'fail'", "? 'never'").Replace(foldSQL))
	w.exec(`select from rewind.create_perspective('p', 't', 'app.mended(jsonb, rewind.event)', p_version => 2)`)
	const second = 2
	w.exec(`select from rewind.apply_perspective_batch('p', 0, p_generation => $1)`, second)
	token := queryOne[int64](t, w.pool, `select rewind.claim_perspective_stream_lock($1, rewind.stream_id('t', 's'), 'w', 'rewind')`, second)
	if got := queryOne[string](t, w.pool, `select concat_ws(' ', state, waits_for) from rewind._finish_rebuild((select max(rebuild_id) from rewind.perspective_rebuilds))`); got != "completed" || w.active("p") != second {
		t.Fatalf("the rebuild is %s, generation %d is shown", got, w.active("p"))
	}
	wantCode(t, w.pool, "RW008", `select from rewind.complete_perspective_cursor_work($1, rewind.stream_id('t', 's'), $2, '{}', $3, 3, 3)`, second, token, at(30))
	w.verified("p", second)
	runUntilIdle(t, w, worker.Config{})
	w.verified("p", second)
	if got := queryOne[[]int64](t, w.pool, `select array_agg((model ->> 'count')::int8 order by stream_key)
		from rewind.perspective_cursors join rewind.streams using (stream_id) where generation_id = $1`, second); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("streams other and s of 1 and 3 events, one of them skipped, have models of %v", got)
	}
	if pending := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_skips where not effective`); pending != 0 {
		t.Errorf("%d skips are pending", pending)
	}
}

// A version may be folded in Go and the next one in SQL, or the other way round: each generation by the fold that it was made for, by one worker.
func TestVersionsInGoAndSQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`create function app.counted(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
		select jsonb_build_object('n', coalesce((model ->> 'n')::int, 0) + 1, 'by', 'SQL') $$`)
	type counted struct {
		N  int    `json:"n"`
		By string `json:"by"`
	}
	const create = `select from rewind.create_perspective('c', 't', 'app.counted(jsonb, rewind.event)', p_version => $1, p_options => '{"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1}')`
	w.exec(create, 1)
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	runUntilIdle(t, w, worker.Config{})

	k := newWorker(t, w, worker.Config{})
	register(t, k, worker.Perspective[counted]{Name: "c", Tree: "t", Version: 2, Apply: func(model counted, _ rewind.Event) (counted, error) {
		return counted{model.N + 1, "Go"}, nil
	}})
	stop := start(t, k)
	events := 2
	// settled appends a late event and one in order, and wants all generations to have folded them, each by its own fold.
	settled := func(want map[int]string) {
		t.Helper()
		w.append("s", testEvent{at: 15, v: 1}, testEvent{at: 20 + events, v: 1})
		events += 2
		eventually(t, func() bool {
			models := map[int]string{}
			for generation := range want {
				models[generation] = queryOne[string](t, w.pool, `select concat_ws(' ', model ->> 'n', model ->> 'by', status) from rewind.perspective_cursors
					where generation_id = $1 and stream_id = rewind.stream_id('t', 's')`, generation)
			}
			for generation, by := range want {
				if models[generation] != fmt.Sprint(events, " ", by, " 2") {
					return false
				}
			}
			return true
		})
		for generation := range want {
			w.verified("c", generation)
		}
	}
	w.waitForRebuild("c")
	first := w.active("c") - 1
	settled(map[int]string{first: "SQL", first + 1: "Go"})
	w.exec(`select from rewind.rollback_perspective('c')`)
	w.waitForRebuild("c")
	if by := queryOne[string](t, w.pool, `select model ->> 'by' from lens.c`); by != "SQL" || w.active("c") != first {
		t.Errorf("after the rollback generation %d is shown, folded in %s", w.active("c"), by)
	}
	settled(map[int]string{first: "SQL", first + 1: "Go"})
	w.exec(`select from rewind.rollback_perspective('c')`)
	w.waitForRebuild("c")
	w.exec(create, 3)
	w.waitForRebuild("c")
	settled(map[int]string{first + 1: "Go", first + 2: "SQL"})
	if err := stop(); err != nil {
		t.Error(err)
	}
	if failed := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors where error is not null`); failed > 0 {
		t.Errorf("%d streams failed", failed)
	}
}

// A rebuild of selected streams waits for no debounce, and not for a stream that had nothing to rebuild when it began.
func TestSelectedStreamsAreDueAtOnce(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]map[string]any{
		"debounce": {"debounce_window": "48h", "max_debounce_window": "60h"},
		"deferral": {"defer_ratio": 0.5, "max_staleness": "72h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			w.exec(`select from rewind.create_perspective('q', 't', 'app.chain(jsonb, rewind.event)', array['happened'], p_options => $1)`, options)
			w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
			w.exec(`select from rewind.append_events('t', 'comes later', '[{"type": "other", "payload": {"v": 1}}]')`)
			w.exec(`call rewind.catch_up('q')`)
			stop := start(t, newWorker(t, w, worker.Config{}))
			w.exec(`select from rewind.begin_perspective_rebuild('q', 'streams', array['s', 'comes later'])`)
			w.append("comes later", testEvent{at: 10, v: 1})
			eventually(t, func() bool {
				return queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors
					where generation_id = (select active_generation from rewind.perspectives where perspective_name = 'q') and status = 2`) == 2
			})
			w.waitForRebuild("q")
			if err := stop(); err != nil {
				t.Error(err)
			}
			w.verified("q", 0)
		})
	}
}

// What somebody asks for isn't put off as not worthwhile.
func TestRequestedRewindIsNotDeferred(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"defer_ratio": 0.5, "max_staleness": "72h"}})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	w.apply()
	w.exec(`select from rewind.request_perspective_rewind('p', 's')`)
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.claim_perspective_rewinds('w')`); n != 1 {
		t.Errorf("%d rewinds are claimed", n)
	}
}

// A generation that is rolled back to waits for no debounce, as one that is built doesn't: nobody reads it, and the rollback waits for it.
func TestRollbackWaitsForNoDebounce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"debounce_window": "48h", "max_debounce_window": "60h"}})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 30, v: 2})
	w.apply()
	before := w.active("p")
	stop := start(t, newWorker(t, w, worker.Config{}))
	w.exec(`select from rewind.begin_perspective_rebuild('p')`)
	w.waitForRebuild("p")
	w.append("s", testEvent{at: 20, v: 3})
	eventually(t, func() bool {
		return queryOne[int](t, w.pool, `select count(*) from rewind.perspective_cursors where status = 32`) == 2
	})
	w.exec(`call rewind.catch_up('p')`) // only what is shown
	w.exec(`select from rewind.rollback_perspective('p')`)
	w.waitForRebuild("p")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if w.active("p") != before {
		t.Errorf("generation %d is shown, not %d", w.active("p"), before)
	}
	w.verified("p", 0)
}

// A stream that is parked by a late event is rid of another one that is skipped, though it gets no further.
func TestSkipInParkedStream(t *testing.T) {
	t.Parallel()
	options := map[string]any{"max_attempts": 1}
	w := newWorld(t, worldOptions{options: options})
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(map[string]any{"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1, "max_attempts": 1}))
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2}, testEvent{at: 30, v: 3})
	settle(t, w, k)
	w.append("s", testEvent{at: 15, v: 4, fail: true})
	settle(t, w, k)
	for _, perspective := range []string{"p", "g"} {
		w.exec(`select from rewind.skip_perspective_event($1, 's', (select event_id from rewind.wal where payload = '{"v": 2}'), 'a test')`, perspective)
	}
	settle(t, w, k)
	if pending := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_skips where not effective`); pending > 0 {
		t.Errorf("%d skips are pending", pending)
	}
	want := fmt.Sprint(chain([]int{1, 3}))
	for _, perspective := range []string{"p", "g"} {
		w.verified(perspective, 0)
		states := w.states(perspective)
		if len(states) != 1 || states[0].Status&4 == 0 || states[0].AppliedVersion != 3 || fmt.Sprint(states[0].Model) != want {
			t.Errorf("%s: %+v, want the model %s", perspective, states, want)
		}
	}
}

// modelTable is that of the models that are shown.
func (w *world) modelTable() string {
	w.t.Helper()
	return queryOne[string](w.t, w.pool, `
		select model_table::text from rewind.perspective_generations g join rewind.perspectives p on p.active_generation = g.generation_id`)
}

// made is what people made of the table of the models that are shown: indexes, grants, row security.
func (w *world) made() string {
	w.t.Helper()
	return queryOne[string](w.t, w.pool, `
		select concat_ws(E'\n', (select string_agg(regexp_replace(indexdef, '^.* USING ', ''), E'\n' order by regexp_replace(indexdef, '^.* USING ', ''))
		    from pg_indexes where schemaname = 'rewind_gen' and tablename = c.relname),
		  c.relacl::text, (select attacl::text from pg_attribute where attrelid = c.oid and attname = 'model'), c.relrowsecurity, c.relforcerowsecurity,
		  (select string_agg(concat_ws(' ', policyname, permissive, roles, cmd, qual, with_check), E'\n' order by policyname)
		    from pg_policies where tablename = c.relname))
		from pg_class c where oid = $1::text::regclass`, w.modelTable())
}

// Indexes, grants and row security that people put on a generation's models follow into the next one.
func TestRebuildKeepsWhatPeopleMade(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, nil)
	w.exec(`create index "by n" on ` + w.modelTable() + ` ((model ->> 'n')) where model ? 'n'`)
	w.exec(`create index on ` + w.modelTable() + ` using gin (model jsonb_path_ops)`)
	w.exec(`grant select on ` + w.modelTable() + ` to pg_monitor`)
	w.exec(`grant select (model) on ` + w.modelTable() + ` to pg_read_all_stats`)
	w.exec(`create policy mine on ` + w.modelTable() + ` for select to pg_monitor using (model ->> 'n' <> '3')`)
	w.exec(`alter table ` + w.modelTable() + ` enable row level security`)
	before, old := w.made(), w.modelTable()
	if !strings.Contains(before, "jsonb_path_ops") || !strings.Contains(before, "mine") || !strings.Contains(before, "pg_monitor=r") {
		t.Fatalf("the description lacks something:\n%s", before)
	}
	for range 2 {
		k := newWorker(t, w, worker.Config{})
		if _, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: "m"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.made()); diff != "" || w.modelTable() == old {
			t.Errorf("of %s, which was %s (-before +after):\n%s", w.modelTable(), old, diff)
		}
		old = w.modelTable()
	}
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_generations`); n != 2 {
		t.Errorf("%d generations are kept after two rebuilds, not two", n)
	}
}

// What is granted, revoked and restricted while a generation is built, or while another one is shown, holds for what is shown then.
func TestRebuildFollowsRights(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, nil)
	on := func(format string) { w.exec(fmt.Sprintf(format, w.modelTable())) }
	on(`grant select on %s to pg_monitor, pg_read_all_stats with grant option`)
	on(`create policy mine on %s for select to pg_monitor using (model ->> 'n' <> '3')`)
	on(`create policy changed on %s for select to pg_monitor using (true)`)
	w.exec(`select from rewind.begin_perspective_rebuild('m', p_options => '{"hold": true}')`)
	runUntilIdle(t, w, worker.Config{})

	on(`revoke select on %s from pg_monitor`)
	on(`revoke grant option for select on %s from pg_read_all_stats`)
	on(`grant select (model) on %s to pg_read_all_settings`)
	on(`drop policy mine on %s`)
	on(`alter policy changed on %s using (false)`)
	on(`create policy added on %s as restrictive for all to public using (model is not null) with check (false)`)
	on(`alter table %s enable row level security`)
	on(`alter table %s force row level security`)
	before, old := w.made(), w.modelTable()
	w.exec(`select from rewind.finish_perspective_rebuild('m')`)
	if diff := cmp.Diff(before, w.made()); diff != "" || w.modelTable() == old {
		t.Errorf("after the rebuild of %s (-before +after):\n%s", old, diff)
	}

	on(`drop policy added on %s`)
	on(`alter table %s no force row level security`)
	on(`alter table %s disable row level security`)
	on(`grant select on %s to pg_monitor`)
	before, old = w.made(), w.modelTable()
	w.exec(`select from rewind.rollback_perspective('m')`)
	runUntilIdle(t, w, worker.Config{})
	if diff := cmp.Diff(before, w.made()); diff != "" || w.modelTable() == old {
		t.Errorf("after the rollback from %s (-before +after):\n%s", old, diff)
	}
}

// A stream that is parked in the generation before can be tried again, so that it doesn't keep that from being shown.
func TestRetryInGenerationBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"max_attempts": 1}})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2, fail: true})
	w.apply()
	w.exec(`create function app.kept(model jsonb, event rewind.event) returns jsonb language sql immutable as $$ select '{}'::jsonb $$`)
	w.exec(`select from rewind.create_perspective('p', 't', 'app.kept(jsonb, rewind.event)', p_version => 2)`)
	runUntilIdle(t, w, worker.Config{})
	if parked := queryOne[bool](t, w.pool, `select status & 4 <> 0 and retry_at is null from rewind.perspective_cursors where generation_id = 1`); !parked || w.active("p") != 2 {
		t.Fatalf("generation %d is shown, and the stream is parked in the one before: %v", w.active("p"), parked)
	}
	w.exec(`create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language sql immutable as $$ select '{"mended": true}'::jsonb $$`)
	if got := queryOne[[]int32](t, w.pool, `select array_agg(generation_id) from rewind.retry_perspective_stream('p', 's')`); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("tried again in %v, want the active generation and the one before", got)
	}
	w.exec(`select from rewind.rollback_perspective('p')`)
	runUntilIdle(t, w, worker.Config{})
	if w.active("p") != 1 {
		t.Errorf("after the rollback generation %d is shown, as %s", w.active("p"), w.rebuildState("p"))
	}
	w.verified("p", 1)
}

// What may and may not be done with generations.
func TestRebuildRefuses(t *testing.T) {
	t.Parallel()
	w := newLoaded(t, 100, 10, nil)
	first := w.active("m")
	wantCode(t, w.pool, "RW006", `select from rewind.begin_perspective_rebuild('nobody')`)
	wantCode(t, w.pool, "22023", `select from rewind.begin_perspective_rebuild('m', 'sideways')`)
	wantCode(t, w.pool, "22023", `select from rewind.begin_perspective_rebuild('m', 'streams')`)
	wantCode(t, w.pool, "22023", `select from rewind.begin_perspective_rebuild('m', 'streams', array['nothing'])`)
	wantCode(t, w.pool, "22023", `select from rewind.begin_perspective_rebuild('m', 'in-place', array['s1'])`)
	wantCode(t, w.pool, "22023", `select from rewind.rollback_perspective('m')`)
	wantCode(t, w.pool, "22023", `select from rewind.finish_perspective_rebuild('m')`)
	wantCode(t, w.pool, "22023", `select from rewind.drop_perspective_generation('m', $1)`, first)
	wantCode(t, w.pool, "RW018", `select from rewind.drop_perspective_generation('m', 999)`)

	w.exec(`select from rewind.begin_perspective_rebuild('m')`)
	w.exec(`select from rewind.begin_perspective_rebuild('m')`)
	wantCode(t, w.pool, "RW009", `select from rewind.begin_perspective_rebuild('m', 'in-place')`)
	wantCode(t, w.pool, "RW007", `select from rewind.create_perspective('m', 't', 'app.marked_2(jsonb, rewind.event)')`)
	w.exec(`select from rewind.create_perspective('m', 't', 'app.marked_2(jsonb, rewind.event)', p_version => 3)`)
	wantCode(t, w.pool, "RW007", `select from rewind.create_perspective('m', 't', 'app.marked_2(jsonb, rewind.event)', p_version => 2)`)
	wantCode(t, w.pool, "RW007", `select from rewind.create_perspective('m', 't', 'app.marked_1(jsonb, rewind.event)', p_version => 3)`)
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_generations`); n != 2 {
		t.Errorf("%d generations are there, not the active one and the one that is built", n)
	}
	w.exec(`select from rewind.abort_perspective_rebuild('m')`)
	if n := queryOne[int](t, w.pool, `select count(*) from pg_class where relname ~ '^(models|snapshots)_\d+$'`); n != 2 {
		t.Errorf("%d tables of generations are left after the abort, not two", n)
	}
	w.verified("m", first)

	k := newWorker(t, w, worker.Config{})
	if _, err := k.Rebuild(t.Context(), worker.Rebuild{Perspective: "m"}); err != nil {
		t.Fatal(err)
	}
	reader := begin(t, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.exec(`select from rewind.rollback_perspective('m')`)
	if n := queryOne[int](t, reader, `select count(*) from lens.m`); n != 10 {
		t.Fatalf("%d models", n)
	}
	w.exec(`select from rewind.finish_perspective_rebuild('m')`)
	second := queryOne[int](t, w.pool, `select max(generation_id) from rewind.perspective_generations`)
	wantCode(t, w.pool, "55006", `select from rewind.drop_perspective_generation('m', $1)`, second)
	commit(t, reader)
	w.exec(`select from rewind.drop_perspective_generation('m', $1)`, second)
	if got := w.active("m"); got != first {
		t.Errorf("generation %d is shown, not %d", got, first)
	}
	w.exec(`select rewind.drop_perspective('m')`)
	if n := queryOne[int](t, w.pool, `select count(*) from pg_class where relname ~ '^(models|snapshots)_\d+$'`); n != 0 {
		t.Errorf("%d tables of generations are left after the perspective was dropped", n)
	}
}
