package tests

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

type chainModel struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
}

// applyChain is foldSQL in Go.
func applyChain(model chainModel, event rewind.Event) (chainModel, error) {
	var payload struct {
		V    int
		Fail bool
	}
	if err := json.Unmarshal(event.Payload, &payload); err != nil {
		return model, err
	}
	switch {
	case payload.Fail:
		return model, fmt.Errorf("event %d fails", payload.V)
	case payload.V%7 == 0:
		return model, rewind.ErrNoModel
	}
	sum := md5.Sum(fmt.Append([]byte(model.Digest), payload.V))
	return chainModel{hex.EncodeToString(sum[:]), model.Count + 1}, nil
}

func chainPerspective(options map[string]any) worker.Perspective[chainModel] {
	return worker.Perspective[chainModel]{Name: "g", Tree: "t", Apply: applyChain, Options: options}
}

func register[M any](t testing.TB, k *worker.Worker, p worker.Perspective[M]) {
	t.Helper()
	if err := worker.Register(k, p); err != nil {
		t.Fatal(err)
	}
}

// settle runs a worker until nothing is left but parked streams.
func settle(t testing.TB, w *world, k *worker.Worker) {
	t.Helper()
	for {
		err := k.RunUntilIdle(t.Context())
		var failed *worker.FailedStreamsError
		if err != nil && !errors.As(err, &failed) {
			t.Fatal("run until idle:", err)
		}
		if err == nil || failed.Failed == 0 {
			return
		}
	}
}

// state is what two perspectives with the same fold must agree on.
type state struct {
	Stream         string
	Status         int
	AppliedVersion int64
	EventsApplied  int64
	LastEventID    *string
	ErrorEventID   *string
	Error          *string
	Model          map[string]any
}

func (w *world) states(perspective string) []state {
	w.t.Helper()
	rows, err := w.pool.Query(ctxOf(w.t), `
		select s.stream_key, c.status, c.applied_version, c.events_applied, c.last_event_id::text, c.error_event_id::text, c.error, c.model
		from rewind.perspective_cursors c
		join rewind.streams s using (stream_id)
		join rewind.perspectives p on p.active_generation = c.generation_id
		where p.perspective_name = $1 order by 1`, perspective)
	if err != nil {
		w.t.Fatal(err)
	}
	states, err := pgx.CollectRows(rows, pgx.RowToStructByPos[state])
	if err != nil {
		w.t.Fatal(err)
	}
	return states
}

// The same fold in Go and in SQL, over the same random log, comes to the same cursors, whatever the batch size.
func TestGoEqualsSQL(t *testing.T) {
	t.Parallel()
	for _, batchSize := range []int{1, 7, 1000} {
		for _, inline := range []int{0, 5, 256} {
			t.Run(fmt.Sprintf("batches_of_%d_inline_%d", batchSize, inline), func(t *testing.T) {
				t.Parallel()
				options := map[string]any{
					"inline_rewind_events": inline, "debounce_window": "0s", "rewind_share": 1, "snapshot_every_n_events": 5,
					"rewind_snapshot_interval_events": 2, "retry_backoff": "1ms", "retry_backoff_max": "1ms", "max_attempts": 3,
				}
				w := newWorld(t, worldOptions{partitions: 2, options: options})
				k := newWorker(t, w, worker.Config{BatchSize: batchSize})
				register(t, k, chainPerspective(options))
				random := rand.New(rand.NewPCG(uint64(batchSize), uint64(inline)))
				w.appendRandomly(random, 120)
				settle(t, w, k)
				w.append("bad", testEvent{at: 10, v: 1}, testEvent{at: 30, v: 2, fail: true}, testEvent{at: 20, v: 3}, testEvent{at: 40, v: 4})
				w.append("late bad", testEvent{at: 10, v: 1}, testEvent{at: 30, v: 2})
				settle(t, w, k)
				w.append("late bad", testEvent{at: 20, v: 3, fail: true}, testEvent{at: 15, v: 4})
				w.appendRandomly(random, 60)
				settle(t, w, k)

				if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
					t.Errorf("cursors (-SQL +Go):\n%s", diff)
				}
				if len(w.states("g")) != 7 {
					t.Errorf("%d streams, want 7", len(w.states("g")))
				}
				w.checkSound()
			})
		}
	}
}

func TestGoFoldFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		apply   func(map[string]any, rewind.Event) (map[string]any, error)
		message string
	}{
		"error":  {func(map[string]any, rewind.Event) (map[string]any, error) { return nil, errors.New("no") }, "no"},
		"panic":  {func(map[string]any, rewind.Event) (map[string]any, error) { panic("oh") }, "panic: oh"},
		"encode": {func(map[string]any, rewind.Event) (map[string]any, error) { return map[string]any{"f": func() {}}, nil }, "encode the model"},
		"no_jsonb": {func(map[string]any, rewind.Event) (map[string]any, error) {
			return map[string]any{"text": "\x00"}, nil
		}, "unsupported Unicode escape sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			k := newWorker(t, w, worker.Config{})
			register(t, k, worker.Perspective[map[string]any]{
				Name: "g", Tree: "t",
				Apply: func(model map[string]any, event rewind.Event) (map[string]any, error) {
					if event.StreamKey == "bad" && string(event.Payload) == `{"v": 2}` {
						return c.apply(model, event)
					}
					return map[string]any{"at": event.OccurredAt.UnixMilli()}, nil
				},
			})
			w.append("bad", testEvent{at: 1, v: 1}, testEvent{at: 2, v: 2})
			w.append("good", testEvent{at: 1, v: 1}, testEvent{at: 2, v: 2})
			err := k.RunUntilIdle(t.Context())
			var failed *worker.FailedStreamsError
			if !errors.As(err, &failed) {
				t.Fatalf("run until idle: %v, want a failed stream", err)
			}
			states := w.states("g")
			if len(states) != 2 {
				t.Fatalf("%d cursors, want 2", len(states))
			}
			bad, good := states[0], states[1]
			want := queryOne[string](t, w.pool, `select event_id::text from rewind.wal where stream_id = rewind.stream_id('t', 'bad') and stream_version = 2`)
			if bad.Status != 4 || bad.Error == nil || !strings.Contains(*bad.Error, c.message) || *bad.ErrorEventID != want {
				t.Errorf("failing stream: %+v", bad)
			}
			if good.Status != 2 || good.AppliedVersion != 2 {
				t.Errorf("other stream: %+v", good)
			}
		})
	}
}

// A model that can't be decoded is an error of its stream, never an empty model.
func TestGoModelOfAnotherShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	w.append("s", testEvent{at: 1, v: 1})
	settle(t, w, k)
	w.exec(`update rewind.perspective_cursors c set model = '{"digest": 1}'
		from rewind.perspectives p where p.active_generation = c.generation_id and p.perspective_name = 'g'`)
	w.append("s", testEvent{at: 2, v: 2})
	err := k.RunUntilIdle(t.Context())
	var failed *worker.FailedStreamsError
	if !errors.As(err, &failed) {
		t.Fatalf("run until idle: %v, want a failed stream", err)
	}
	if s := w.states("g")[0]; s.Status != 4 || !strings.HasPrefix(*s.Error, "decode the model") || s.AppliedVersion != 1 {
		t.Errorf("cursor: %+v", s)
	}
}

func TestUnknownGoPerspective(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.register_perspective('g', 't')`)
	w.append("s", inOrder(3)...)

	runUntilIdle(t, w, worker.Config{})
	w.checkSound()
	if states := w.states("g"); len(states) > 0 {
		t.Errorf("a worker that doesn't know the perspective made %+v", states)
	}

	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	settle(t, w, k)
	if states := w.states("g"); len(states) != 1 || states[0].AppliedVersion != 3 {
		t.Errorf("a worker that knows it made %+v", states)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(nil))
	for name, p := range map[string]worker.Perspective[chainModel]{
		"twice":    chainPerspective(nil),
		"no_name":  {Tree: "t", Apply: applyChain},
		"no_tree":  {Name: "x", Apply: applyChain},
		"no_apply": {Name: "x", Tree: "t"},
		"version":  {Name: "x", Tree: "t", Apply: applyChain, Version: -1},
		"options":  {Name: "x", Tree: "t", Apply: applyChain, Options: map[string]any{"x": func() {}}},
	} {
		if err := worker.Register(k, p); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Run(ctx); err != nil {
		t.Errorf("run that was to end before it began: %v", err)
	}
}

// What a batch in Go has to read is bounded: its own records, and the repairs that it makes. Those for which that is too little are for the
// rewind path, which goes in pages.
func TestGoBatchIsBounded(t *testing.T) {
	t.Parallel()
	const streams, events, maxBytes = 10, 50, 100_000
	w := newWorld(t, worldOptions{})
	options := map[string]any{"inline_rewind_events": 256, "debounce_window": "0s", "rewind_share": 1, "snapshots_enabled": false}
	k := newWorker(t, w, worker.Config{})
	register(t, k, chainPerspective(options))
	for i := range streams * events {
		w.exec(`select from rewind.append_events('t', $1, $2)`, fmt.Sprint("s", i%streams), []any{map[string]any{
			"event_id": at(1000 + i), "type": "happened", "payload": map[string]any{"v": 1}, "metadata": map[string]any{"note": noise(i, 1000)},
		}})
	}
	settle(t, w, k)
	for i := range streams {
		w.append(fmt.Sprint("s", i), testEvent{at: i, v: 2})
	}
	read := func(maxBytes int) (read, size int64) {
		t.Helper()
		tx := begin(t, w.pool, pgx.TxOptions{})
		defer tx.Rollback(t.Context())
		generation := queryOne[int](t, tx, `select active_generation from rewind.perspectives where perspective_name = 'g'`)
		if err := tx.QueryRow(t.Context(), `
			select count(*) filter (where event_id is not null), coalesce(sum(rewind._event_size(payload, metadata)) filter (where event_id is not null), 0)
			from rewind._read_go_batch($1, 0, 5000, $2)`, generation, maxBytes).Scan(&read, &size); err != nil {
			t.Fatal(err)
		}
		return read, size
	}
	if n, size := read(maxBytes); n == 0 || size > 2*maxBytes {
		t.Errorf("%d events of %d bytes are read", n, size)
	}
	if n, _ := read(100 * maxBytes); n != streams*(events+1) {
		t.Errorf("%d events are read where all fit", n)
	}
	// One record is read, whatever its size; its repair alone would be too much.
	if n, _ := read(1000); n != 0 {
		t.Errorf("%d events are read where no repair fits", n)
	}
	settle(t, w, k)
	if diff := cmp.Diff(w.states("p"), w.states("g")); diff != "" {
		t.Errorf("cursors (-SQL +Go):\n%s", diff)
	}
}
