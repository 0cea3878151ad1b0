package tests

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
)

// foldSQL is a fold that depends on order (a digest chain) and on every way in which an event can act: one whose v is a multiple of 7
// removes the model, one with "fail" raises.
const foldSQL = `
create schema if not exists app;
create or replace function app.chain(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
begin
  if event.payload ? 'fail' then
    raise exception 'event % fails', event.payload ->> 'v';
  elsif (event.payload ->> 'v')::int % 7 = 0 then
    return null;
  end if;
  return jsonb_build_object('digest', md5(coalesce(model ->> 'digest', '') || (event.payload ->> 'v')), 'count', coalesce((model ->> 'count')::int, 0) + 1);
end
$$`

// chain is the same fold in Go; nil is no model.
func chain(values []int) map[string]any {
	var model map[string]any
	for _, v := range values {
		if v%7 == 0 {
			model = nil
			continue
		}
		digest, count := "", 0
		if model != nil {
			digest, count = model["digest"].(string), int(model["count"].(float64))
		}
		sum := md5.Sum(fmt.Append([]byte(digest), v))
		model = map[string]any{"digest": hex.EncodeToString(sum[:]), "count": float64(count + 1)}
	}
	return model
}

// world is a database with tree "t" and perspective "p" over it.
type world struct {
	t    testing.TB
	pool *pgxpool.Pool
}

type worldOptions struct {
	partitions int
	options    map[string]any
}

// newWorld makes a tree of few partitions, so that streams share them, and a perspective that repairs on the rewind path at once.
func newWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	return newWorldIn(t, testdb.New(t), o)
}

func newWorldIn(t testing.TB, pool *pgxpool.Pool, o worldOptions) *world {
	t.Helper()
	w := &world{t: t, pool: pool}
	w.exec(foldSQL)
	w.exec(`select from rewind.create_tree('t', $1)`, max(o.partitions, 1))
	options := map[string]any{"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1}
	for k, v := range o.options {
		options[k] = v
	}
	w.exec(`select from rewind.create_perspective('p', 't', 'app.chain(jsonb, rewind.event)', p_options => $1)`, options)
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(ctxOf(w.t), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// ctxOf is for helpers that also run in cleanup and in rapid's checks.
func ctxOf(testing.TB) context.Context { return context.Background() }

func queryOne[T any](t testing.TB, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, sql string, args ...any) T {
	t.Helper()
	rows, err := db.Query(ctxOf(t), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// at makes an event id that happened n milliseconds after a fixed time, so that tests can say what comes before what.
func at(n int) uuid.UUID {
	id := uuid.New()
	ms := uint64(1_700_000_000_000 + n)
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	return id
}

type testEvent struct {
	at   int
	id   uuid.UUID // instead of at
	v    int
	fail bool
}

func (w *world) append(stream string, events ...testEvent) {
	w.t.Helper()
	appendEvents(w.t, w.pool, stream, events...)
}

func appendEvents(t testing.TB, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, stream string, events ...testEvent) {
	t.Helper()
	list := make([]map[string]any, len(events))
	for i, e := range events {
		payload := map[string]any{"v": e.v}
		if e.fail {
			payload["fail"] = true
		}
		if e.id == uuid.Nil {
			e.id = at(e.at)
		}
		list[i] = map[string]any{"event_id": e.id, "type": "happened", "payload": payload}
	}
	if _, err := db.Exec(ctxOf(t), `select from rewind.append_events('t', $1, $2::text::jsonb)`, stream, jsonOf(t, list)); err != nil {
		t.Fatal(err)
	}
}

// apply runs the live path of all partitions dry.
func (w *world) apply() {
	w.t.Helper()
	for _, partition := range queryOne[[]int32](w.t, w.pool, `select array_agg(wal_partition order by wal_partition) from rewind.partitions where tree_name = 't'`) {
		for queryOne[int64](w.t, w.pool, `select coalesce(sum(records_read), 0)::bigint from rewind.apply_perspective_batch('p', $1)`, partition) > 0 {
		}
	}
}

func (w *world) catchUp() {
	w.t.Helper()
	w.exec(`call rewind.catch_up('p')`)
}

// cursor is what tests look at of a perspective_cursors row.
type cursor struct {
	Status         int32
	AppliedVersion int64
	EventsApplied  int64
	LastEventID    *uuid.UUID
	Model          map[string]any
	Trigger        *uuid.UUID
	Error          *string
	ErrorEventID   *uuid.UUID
	Attempts       int32
	RetryAt        *time.Time
}

func (w *world) cursor(stream string) cursor {
	w.t.Helper()
	rows, err := w.pool.Query(ctxOf(w.t), `
		select status, applied_version, events_applied, last_event_id, model, rewind_trigger_event_id, error, error_event_id, attempts, retry_at
		from rewind.perspective_cursors where stream_id = rewind.stream_id('t', $1)`, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[cursor])
	if err != nil {
		w.t.Fatalf("cursor of %s: %v", stream, err)
	}
	return c
}

// claim claims the one due rewind and returns its token.
func (w *world) claim() (token int64, trigger *uuid.UUID, behind int64) {
	w.t.Helper()
	err := w.pool.QueryRow(ctxOf(w.t), `select token, trigger_event_id, events_behind from rewind.claim_perspective_rewinds('tester')`).Scan(&token, &trigger, &behind)
	if err != nil {
		w.t.Fatal("claim:", err)
	}
	return token, trigger, behind
}

// checkSound holds every cursor and snapshot against a fold in Go (I1, I4), looks for what was passed over (I2), and expects
// verify_perspective to agree.
func (w *world) checkSound() {
	w.t.Helper()
	ctx := ctxOf(w.t)
	tx, err := w.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		w.t.Fatal(err)
	}
	defer tx.Rollback(ctx)

	type record struct {
		Version   int64
		Partition int
		Offset    int64
		ID        uuid.UUID
		V         int
	}
	log := map[uuid.UUID][]record{} // in chronology
	rows, err := tx.Query(ctx, `select stream_id, stream_version, wal_partition, wal_offset, event_id, (payload ->> 'v')::int
		from rewind.wal where tree_id = (select tree_id from rewind.trees where tree_name = 't') order by stream_id, event_id`)
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		var stream uuid.UUID
		var r record
		if err := rows.Scan(&stream, &r.Version, &r.Partition, &r.Offset, &r.ID, &r.V); err != nil {
			w.t.Fatal(err)
		}
		log[stream] = append(log[stream], r)
	}

	type point struct {
		Kind           string
		Stream         uuid.UUID
		Key            string
		Status         int32
		AppliedVersion int64
		EventsApplied  int64
		EventID        *uuid.UUID
		Model          map[string]any
	}
	var positions map[int]int64 // of the live path, by partition
	if err := tx.QueryRow(ctx, `select jsonb_object_agg(wal_partition, next_offset) from rewind.perspective_partitions`).Scan(&positions); err != nil {
		w.t.Fatal(err)
	}
	rows, err = tx.Query(ctx, `
		select 'cursor', c.stream_id, s.stream_key, c.status, c.applied_version, c.events_applied, c.last_event_id, c.model
		from rewind.perspective_cursors c join rewind.streams s using (stream_id)
		union all
		select 'snapshot', n.stream_id, s.stream_key, 0, c.applied_version, n.events_applied, n.event_id, n.model
		from rewind.perspective_snapshots n join rewind.streams s using (stream_id)
		join rewind.perspective_cursors c using (generation_id, stream_id)`)
	if err != nil {
		w.t.Fatal(err)
	}
	points, err := pgx.CollectRows(rows, pgx.RowToStructByPos[point])
	if err != nil {
		w.t.Fatal(err)
	}
	seen := map[uuid.UUID]bool{}
	for _, p := range points {
		var values []int
		var last *uuid.UUID
		var owed []int64
		for _, r := range log[p.Stream] {
			switch {
			case r.Version > p.AppliedVersion:
				if r.Offset < positions[r.Partition] {
					owed = append(owed, r.Version)
				}
			case p.Kind == "snapshot" && r.ID.String() > p.EventID.String():
			default:
				values = append(values, r.V)
				last = &r.ID
			}
		}
		want, got := chain(values), p.Model
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("%s of %s (applied %d): model (-want +got):\n%s", p.Kind, p.Key, p.AppliedVersion, diff)
		}
		if diff := cmp.Diff(last, p.EventID); diff != "" || int64(len(values)) != p.EventsApplied {
			w.t.Errorf("%s of %s: %d events up to %v, want %d up to %v", p.Kind, p.Key, p.EventsApplied, p.EventID, len(values), last)
		}
		if p.Kind == "cursor" {
			seen[p.Stream] = true
			if len(owed) > 0 && p.Status&44 == 0 {
				w.t.Errorf("cursor of %s passed over versions %v: status %d, applied %d", p.Key, owed, p.Status, p.AppliedVersion)
			}
		}
	}
	for stream, records := range log {
		for _, r := range records {
			if !seen[stream] && r.Offset < positions[r.Partition] {
				w.t.Errorf("stream %v has no cursor though its record at %d was read", stream, r.Offset)
			}
		}
	}
	if found := w.verify(); len(found) > 0 {
		w.t.Errorf("verify_perspective: %v", found)
	}
}

func (w *world) verify() []string {
	w.t.Helper()
	rows, err := w.pool.Query(ctxOf(w.t), `select coalesce(stream_key, '') || ' ' || problem from rewind.verify_perspective('p') order by 1`)
	if err != nil {
		w.t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// checkSettled expects soundness and nothing owed.
func (w *world) checkSettled() {
	w.t.Helper()
	w.checkSound()
	if owing := queryOne[int64](w.t, w.pool, `select count(*) from rewind.perspective_cursors where status <> 2 or rewind_flagged_at is not null`); owing > 0 {
		w.t.Errorf("%d cursors owe something", owing)
	}
	if lag := queryOne[int64](w.t, w.pool, `select count(*) from rewind.perspective_generations g, rewind._unread_partitions(g.generation_id)`); lag > 0 {
		w.t.Errorf("%d partitions are not read to their ends", lag)
	}
}

// wantCode runs a statement that must fail with an SQLSTATE, and returns the error.
func wantCode(t testing.TB, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, code, sql string, args ...any) *pgconn.PgError {
	t.Helper()
	_, err := db.Exec(ctxOf(t), sql, args...)
	pgErr, ok := err.(*pgconn.PgError)
	if !ok || pgErr.Code != code {
		t.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
		return &pgconn.PgError{}
	}
	return pgErr
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
