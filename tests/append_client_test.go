package tests

import (
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

// The client works in every mode of pgx, since some poolers know no prepared statements.
func TestClient(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(testdb.NewURL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			testClient(t, pool)
		})
	}
}

func testClient(t *testing.T, pool *pgxpool.Pool) {
	ctx := t.Context()
	if err := rewind.CreateTree(ctx, pool, "orders", 4); err != nil {
		t.Fatal(err)
	}
	if err := rewind.CreateTree(ctx, pool, "orders", 5); !errors.Is(err, rewind.ErrDefinitionConflict) {
		t.Errorf("another number of partitions: %v", err)
	}

	id, happened := uuid.Must(uuid.NewV7()), time.Date(2024, 2, 29, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	events := []rewind.NewEvent{
		{ID: id, Type: "Placed", Payload: map[string]any{"amount": 12.5}, Metadata: json.RawMessage(`{"by": "me"}`)},
		{Time: happened, Type: "Noted", Payload: json.RawMessage(`[1, "\\u0000"]`)},
		{Type: "Paid"},
	}
	first, err := rewind.Append(ctx, pool, "orders", "o1", events, rewind.ExpectedVersion(0), rewind.Tenant("acme"))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range first {
		if a.StreamVersion != int64(i+1) || a.Offset != int64(i) || !a.WasNew {
			t.Errorf("event %d stands at %+v", i, a)
		}
	}
	if first[0].EventID != id {
		t.Errorf("event id %v, want %v", first[0].EventID, id)
	}
	if got, want := rewind.EventTime(first[1].EventID), happened.UTC().Round(time.Microsecond); !got.Equal(want) {
		t.Errorf("happened at %v, want %v", got, want)
	}

	again, err := rewind.Append(ctx, pool, "orders", "o1", events[:2], rewind.ExpectedVersion(0), rewind.Tenant("acme"))
	if err != nil {
		t.Fatal(err)
	}
	want := []rewind.Appended{first[0], first[1]}
	want[0].WasNew, want[1].WasNew = false, false
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error("appended again:", diff)
	}

	batch := []rewind.StreamEvent{
		{Stream: "o2", NewEvent: rewind.NewEvent{Type: "Placed", Payload: map[string]any{"amount": 1}}},
		{Stream: "o1", NewEvent: events[0]},
		{Stream: "o2", NewEvent: rewind.NewEvent{Time: happened, Type: "Noted"}},
		{Stream: "o2", NewEvent: rewind.NewEvent{Time: happened, Type: "Noted"}},
		{Stream: "o1", NewEvent: events[1]},
	}
	places, err := rewind.AppendBatch(ctx, pool, "orders", batch, rewind.Tenant("acme"))
	if err != nil {
		t.Fatal(err)
	}
	var news []bool
	for _, p := range places {
		news = append(news, p.WasNew)
	}
	if diff := cmp.Diff([]bool{true, false, true, true, false}, news); diff != "" {
		t.Error("new in the batch:", diff)
	}
	if again, err := rewind.AppendBatch(ctx, pool, "orders", batch[1:], rewind.Tenant("acme")); err != nil {
		t.Error(err)
	} else if again[1].EventID != places[2].EventID || again[2].WasNew {
		t.Errorf("the batch again: %+v", again)
	}

	records := collect(t, rewind.ReadStream(ctx, pool, "orders", "o1", rewind.Tenant("acme")))
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	wantEvent := rewind.Event{
		StreamID:   records[0].StreamID,
		StreamKey:  "o1",
		TenantID:   "acme",
		ID:         first[1].EventID,
		Type:       "Noted",
		OccurredAt: happened.UTC().Round(time.Microsecond),
		Payload:    json.RawMessage(`[1, "\\u0000"]`),
	}
	if diff := cmp.Diff(wantEvent, records[0].Event()); diff != "" {
		t.Error("first of the stream:", diff)
	}
	if string(records[1].Payload) != `{"amount": 12.5}` || string(records[1].Metadata) != `{"by": "me"}` || records[2].Payload != nil {
		t.Errorf("payloads: %s, %s, %s", records[1].Payload, records[1].Metadata, records[2].Payload)
	}

	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if err := rewind.LockStreams(ctx, tx, "orders", []string{"o1", "o2", "o3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := rewind.Append(ctx, tx, "orders", "o3", []rewind.NewEvent{{Type: "Placed"}}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if records := collect(t, rewind.ReadStream(ctx, pool, "orders", "o3")); len(records) != 0 {
		t.Error("an append outlived its transaction:", records)
	}
}

func collect(t *testing.T, records iter.Seq2[rewind.Record, error]) (all []rewind.Record) {
	t.Helper()
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestClientErrors(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	ctx := t.Context()
	if err := rewind.CreateTree(ctx, pool, "t", 1); err != nil {
		t.Fatal(err)
	}

	store := func(events ...rewind.NewEvent) error {
		_, err := rewind.Append(ctx, pool, "t", "s", events, rewind.ExpectedVersion(0))
		return err
	}
	id := uuid.Must(uuid.NewV7())
	if err := store(rewind.NewEvent{ID: id, Type: "a"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err         error
		sentinel    error
		indexes     []int
		isFoundHere bool // and not by the database
	}{
		"version conflict": {store(rewind.NewEvent{Type: "a"}), rewind.ErrVersionConflict, []int{0}, false},
		"reused id":        {store(rewind.NewEvent{ID: id, Type: "b"}), rewind.ErrEventIDReused, []int{0}, false},
		"no UUIDv7":        {store(rewind.NewEvent{ID: uuid.New(), Type: "b"}), rewind.ErrEventIDNotV7, []int{0}, false},
		"future":           {store(rewind.NewEvent{Time: time.Now().Add(time.Hour), Type: "b"}), rewind.ErrTooFarInFuture, []int{0}, false},
		"no type":          {store(rewind.NewEvent{Type: "b"}, rewind.NewEvent{}, rewind.NewEvent{}), rewind.ErrMalformedEvent, []int{1, 2}, false},
		"zero character": {store(rewind.NewEvent{Type: "b"}, rewind.NewEvent{Type: "b", Payload: "a\x00"}), rewind.ErrMalformedEvent,
			[]int{1}, true},
		"lone surrogate":         {store(rewind.NewEvent{Type: "b", Payload: json.RawMessage(`"\ud800"`)}), rewind.ErrMalformedEvent, nil, false},
		"too large a number":     {store(rewind.NewEvent{Type: "b", Payload: json.RawMessage(`1e200000`)}), rewind.ErrMalformedEvent, nil, false},
		"id and time":            {store(rewind.NewEvent{Type: "b"}, rewind.NewEvent{ID: id, Time: time.Now(), Type: "b"}), rewind.ErrMalformedEvent, []int{1}, true},
		"a type that is no text": {store(rewind.NewEvent{Type: "b\xff"}, rewind.NewEvent{Type: "b\x00"}), rewind.ErrMalformedEvent, []int{0, 1}, true},
		"times": {store(rewind.NewEvent{Type: "b", Time: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
			rewind.NewEvent{Type: "b", Time: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)},
			rewind.NewEvent{Type: "b", Time: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}), rewind.ErrMalformedEvent, []int{0, 1, 2}, true},
		"id and time, and no text, in a batch": {func() error {
			_, err := rewind.AppendBatch(ctx, pool, "t", []rewind.StreamEvent{
				{Stream: "s", NewEvent: rewind.NewEvent{ID: id, Time: time.Now(), Type: "b"}}, {Stream: "s", NewEvent: rewind.NewEvent{Type: "b\xff"}},
			})
			return err
		}(), rewind.ErrMalformedEvent, []int{0, 1}, true},
		"no type in a batch": {func() error {
			_, err := rewind.AppendBatch(ctx, pool, "t", []rewind.StreamEvent{{Stream: "s"}})
			return err
		}(), rewind.ErrMalformedEvent, []int{0}, false},
		"unknown tree": {func() error {
			_, err := rewind.Append(ctx, pool, "nowhere", "s", nil)
			return err
		}(), rewind.ErrUnknownTree, nil, false},
		"unknown tree to read": {func() error {
			for _, err := range rewind.ReadStream(ctx, pool, "nowhere", "s") {
				return err
			}
			return nil
		}(), rewind.ErrUnknownTree, nil, false},
	} {
		var own *rewind.Error
		if !errors.Is(c.err, c.sentinel) || !errors.As(c.err, &own) {
			t.Errorf("%s: %v", name, c.err)
			continue
		}
		var indexes []int
		for _, e := range own.Events() {
			indexes = append(indexes, e.Index)
		}
		if diff := cmp.Diff(c.indexes, indexes); diff != "" {
			t.Errorf("%s: indexes: %s", name, diff)
		}
		var pgErr *pgconn.PgError
		if errors.As(c.err, &pgErr) == c.isFoundHere {
			t.Errorf("%s: a PgError in %v: %v", name, c.err, c.isFoundHere)
		}
		if errors.Is(c.err, rewind.ErrLockLost) || errors.Is(c.err, nil) {
			t.Errorf("%s: matches a sentinel of another code", name)
		}
	}

	_, err := rewind.AppendBatch(ctx, pool, "t", []rewind.StreamEvent{{Stream: "s", NewEvent: rewind.NewEvent{Type: "b"}}, {Stream: "s"}, {Stream: "s"}})
	if want := `rewind: append a batch to tree "t": malformed event: event 1, type: missing, and 1 more (SQLSTATE RW017)`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	// What would be altered on its way, and become what another name is, is refused.
	for name, err := range map[string]error{
		"tenant": func() error {
			_, err := rewind.Append(ctx, pool, "t", "s", []rewind.NewEvent{{Type: "b"}}, rewind.Tenant("\xff"))
			return err
		}(),
		"stream": func() error {
			_, err := rewind.Append(ctx, pool, "t", "s\x00", []rewind.NewEvent{{Type: "b"}})
			return err
		}(),
		"stream of a batch": func() error {
			_, err := rewind.AppendBatch(ctx, pool, "t", []rewind.StreamEvent{{Stream: "s\xff", NewEvent: rewind.NewEvent{Type: "b"}}})
			return err
		}(),
	} {
		var own *rewind.Error
		if !errors.As(err, &own) || own.Code != "22021" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, partitions := range []int{1<<32 + 4, -1 << 40} {
		if err := rewind.CreateTree(ctx, pool, "large", partitions); err == nil {
			t.Errorf("a tree of %d partitions is made", partitions)
		}
		if err := rewind.RepartitionTree(ctx, pool, "t", partitions); err == nil {
			t.Errorf("a tree gets %d partitions", partitions)
		}
	}
	if _, err := rewind.AppendBatch(ctx, pool, "t", nil, rewind.ExpectedVersion(1)); err == nil {
		t.Error("a batch takes an expected version")
	}
	for _, opts := range [][]rewind.Option{{rewind.ExpectedVersion(1)}, {rewind.ByArrival(), rewind.AfterEvent(id)}} {
		for _, err := range rewind.ReadStream(ctx, pool, "t", "s", opts...) {
			if err == nil {
				t.Error("reading takes options that have no meaning")
			}
		}
	}
}

// A time that is finer than a microsecond is the same time, whether Go or SQL is told it: else the same event would be stored twice.
func TestFineTimes(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	if err := rewind.CreateTree(t.Context(), pool, "t", 1); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	var events []rewind.NewEvent
	var texts []map[string]any
	for i := range 300 {
		ns := random.IntN(1_000_000_000)
		if i%2 == 0 {
			ns = ns/1000*1000 + 500 // halfway
		}
		if i == 0 {
			ns = 999_999_999
		}
		at := time.Date(2026, 3, 1, 9, 0, i%60, ns, time.UTC)
		events = append(events, rewind.NewEvent{Time: at, Type: "t"})
		texts = append(texts, map[string]any{"time": at.Format(time.RFC3339Nano), "type": "t"})
	}
	if _, err := rewind.Append(t.Context(), pool, "t", "s", events); err != nil {
		t.Fatal(err)
	}
	if n := queryOne[int](t, pool, `select count(*) from rewind.append_events('t', 's', $1) where was_new`, texts); n > 0 {
		t.Errorf("%d of %d events are new when SQL is told them again", n, len(events))
	}
}
