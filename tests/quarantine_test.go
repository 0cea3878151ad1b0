package tests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

const (
	hour = int(time.Hour / time.Millisecond)
	day  = 24 * hour
)

// newGuarded is a database with tree t, whose clock stands at the time of at(0): what happened after a minute from then is too far in the
// future, what happened more than an hour before is too old.
func newGuarded(t *testing.T, policy string) *world {
	t.Helper()
	w := newWorld(t, worldOptions{partitions: 2})
	testdb.SetClock(t, w.pool, time.UnixMilli(1_700_000_000_000))
	w.exec(`select rewind.set_options(jsonb_build_object('skew_policy', $1::text, 'lateness_horizon', '1h'), p_tree => 't')`, policy)
	return w
}

// sent is what an append says of an event.
type sent struct {
	ID      uuid.UUID
	Version *int64
	IsNew   bool
}

func send(t *testing.T, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, sql string, args ...any) []sent {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sent])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const (
	appendOneSQL   = `select event_id, stream_version, was_new from rewind.append_events('t', 's', $1, $2)`
	appendBatchSQL = `select event_id, stream_version, was_new from rewind.append_batch('t', $1, $2, $3, $4)`
)

// given is an event with an id.
func given(id uuid.UUID) map[string]any {
	return map[string]any{"event_id": id, "type": "happened", "payload": map[string]any{"v": 1}}
}

// timed is an event with a time, n milliseconds after at(0).
func timed(n int) map[string]any {
	return map[string]any{"time": 1_700_000_000_000 + n, "type": "happened", "payload": map[string]any{"v": 1}}
}

func made() map[string]any {
	return map[string]any{"type": "happened", "payload": map[string]any{"v": 1}}
}

func (w *world) held() int64 {
	w.t.Helper()
	return queryOne[int64](w.t, w.pool, `select count(*) from rewind.quarantined_events where state = 'held'`)
}

func (w *world) logged() int64 {
	w.t.Helper()
	return queryOne[int64](w.t, w.pool, `select count(*) from rewind.wal`)
}

func TestGuardsRefuse(t *testing.T) {
	t.Parallel()
	w := newGuarded(t, "reject")
	taken := at(0)
	send(t, w.pool, appendOneSQL, []any{given(taken)}, nil)
	other := given(taken)
	other["type"] = "other"

	for name, test := range map[string]struct {
		events []any
		code   string
		blamed []string
	}{
		"an id in the future":            {[]any{given(at(day))}, "RW004", []string{"0 event_id"}},
		"a time in the future":           {[]any{timed(day)}, "RW004", []string{"0 time"}},
		"an old id":                      {[]any{given(at(-day))}, "RW015", []string{"0 event_id"}},
		"an old time":                    {[]any{timed(-day)}, "RW015", []string{"0 time"}},
		"every one of them":              {[]any{timed(day), given(at(1)), given(at(day)), made()}, "RW004", []string{"0 time", "2 event_id"}},
		"every old one":                  {[]any{made(), timed(-day), given(at(-2 * day))}, "RW015", []string{"1 time", "2 event_id"}},
		"the future before the past":     {[]any{timed(-day), timed(day)}, "RW004", []string{"1 time"}},
		"before what is reused":          {[]any{other, timed(-day)}, "RW015", []string{"1 time"}},
		"after what is no UUIDv7":        {[]any{timed(day), given(uuid.New())}, "RW003", []string{"1 event_id"}},
		"within the minute and the hour": {[]any{timed(59_000), timed(1 - hour), given(at(59_999))}, "RW001", []string{"0", "1", "2"}},
	} {
		before := w.logged()
		err := wantCode(t, w.pool, test.code, appendOneSQL, test.events, before+7) // a version that the stream doesn't have
		if diff := cmp.Diff(test.blamed, complaints(t, err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if w.logged() != before || w.held() > 0 {
			t.Errorf("%s: something was stored", name)
		}
	}

	var streams, types []string
	var ids []uuid.UUID
	var payloads []any
	for i, id := range []uuid.UUID{at(day), at(0), at(-day)} {
		streams, ids, types, payloads = append(streams, fmt.Sprint("s", i)), append(ids, id), append(types, "happened"), append(payloads, 1)
	}
	if diff := cmp.Diff([]string{"0 event_id"}, complaints(t, wantCode(t, w.pool, "RW004", appendBatchSQL, streams, ids, types, payloads))); diff != "" {
		t.Errorf("batch: %s", diff)
	}
}

// An event that its stream has comes back with its place, whatever the guards say by now, alone or among others.
func TestGuardsKnowWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"reject", "quarantine"} {
		w := newGuarded(t, policy)
		events := []any{given(at(0)), timed(1), timed(1)}
		first := send(t, w.pool, appendOneSQL, events, nil)
		testdb.Advance(t, w.pool, 24*time.Hour)
		for i := range first {
			first[i].IsNew = false
		}
		if diff := cmp.Diff(first, send(t, w.pool, appendOneSQL, events, nil)); diff != "" {
			t.Error(policy, "all of them again:", diff)
		}
		for i := range 2 {
			if diff := cmp.Diff(first[i:i+1], send(t, w.pool, appendOneSQL, events[i:i+1], nil)); diff != "" {
				t.Error(policy, "one of them again:", diff)
			}
		}
		reused := given(at(0))
		reused["event_id"], reused["type"] = first[0].ID, "other"
		wantCode(t, w.pool, "RW002", appendOneSQL, []any{reused}, nil)
		if w.held() > 0 || w.logged() != 3 {
			t.Errorf("%s: %d in quarantine, %d in the log", policy, w.held(), w.logged())
		}
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()

	t.Run("takes one event", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		id := at(day)
		for range 2 {
			if diff := cmp.Diff([]sent{{ID: id}}, send(t, w.pool, appendOneSQL, []any{given(id)}, 0)); diff != "" {
				t.Error(diff)
			}
		}
		event := queryOne[string](t, w.pool, `
			select format('%s %s %s %s %s %s %s %s', tree_name, q.tenant_id, q.stream_key, q.event_type, q.payload, q.reason, q.detail ->> 'field', q.state)
			from rewind.quarantined_events q join rewind.trees using (tree_id)`)
		if want := `t  s happened {"v": 1} RW004 event_id held`; event != want {
			t.Errorf("in quarantine: %s, want %s", event, want)
		}
		if n := queryOne[int64](t, w.pool, `select count(*) from rewind.streams`); n > 0 {
			t.Errorf("%d streams", n)
		}
	})

	t.Run("keeps all that a new stream has", func(t *testing.T) {
		t.Parallel()
		later := map[string]string{
			"one":      `select from rewind.append_events('t', 's', '[{"type": "y"}]')`,
			"several":  `select from rewind.append_events('t', 's', '[{"type": "y"}, {"type": "z"}]')`,
			"batch":    `select from rewind.append_batch('t', '{s,other}', '{null,null}', '{y,y}', '{1,1}')`,
			"released": `select from rewind.release_quarantined_event(1)`,
		}
		for name, sql := range later {
			for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
				w := newGuarded(t, "quarantine")
				send(t, w.pool, appendBatchSQL, []string{"other", "s"}, []*uuid.UUID{nil, new(at(day))}, []string{"x", "x"}, []string{"1", "2"})
				if got := texts(t, w.pool, `select stream_key from rewind.streams`); !slices.Equal(got, []string{"other"}) {
					t.Errorf("streams %v, want the one that has an event", got)
				}
				// An earlier version left the stream without its event.
				for range 2 {
					tx := begin(t, w.pool, pgx.TxOptions{IsoLevel: isolation})
					if _, err := tx.Exec(t.Context(), sql); err != nil {
						t.Errorf("%s, %s: %v", name, isolation, err)
					}
					if err := tx.Rollback(t.Context()); err != nil {
						t.Error(err)
					}
					w.exec(`
						insert into rewind.streams select rewind.stream_id('t', 's'), tree_id, 0, '', 's' from rewind.trees where tree_name = 't'
						on conflict do nothing`)
				}
			}
		}
	})

	t.Run("lets the others of a call pass", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		events := []any{made(), timed(day), given(at(2)), timed(day), timed(-day), made()}
		got := send(t, w.pool, appendOneSQL, events, 0)
		for i, version := range []int64{1, 0, 2, 0, 0, 3} {
			if (got[i].Version == nil) != (version == 0) || version > 0 && *got[i].Version != version || got[i].IsNew != (version > 0) {
				t.Errorf("event %d: %+v, want version %d", i, got[i], version)
			}
		}
		if got[1].ID == got[3].ID {
			t.Error("twins became one")
		}
		// An id from the future pushes up none that is made after it.
		if latest := rewind.EventTime(got[5].ID); latest.After(time.UnixMilli(1_700_000_000_003)) {
			t.Errorf("the last one happened at %v", latest)
		}
		reasons := queryOne[[]string](t, w.pool, `select array_agg(reason || ' ' || (detail ->> 'reason') order by quarantine_id) from rewind.quarantined_events`)
		if diff := cmp.Diff([]string{"RW004 further in the future than 00:01:00", "RW004 further in the future than 00:01:00", "RW015 older than 01:00:00"}, reasons); diff != "" {
			t.Error(diff)
		}

		again := send(t, w.pool, appendOneSQL, events[1:5], 0)
		for i := range again {
			if again[i].ID != got[i+1].ID || again[i].IsNew {
				t.Errorf("event %d again: %+v, want %+v", i+1, again[i], got[i+1])
			}
		}
		if w.held() != 3 || w.logged() != 3 {
			t.Errorf("%d in quarantine, %d in the log, want three of each", w.held(), w.logged())
		}
	})

	t.Run("takes those of a batch", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		ids := []any{at(day), at(1), nil, at(1), at(-day), at(1)}
		ids[5] = ids[3] // a twin of the same stream
		got := send(t, w.pool, appendBatchSQL, []string{"a", "a", "b", "c", "c", "c"}, ids,
			strings.Split(strings.Repeat("happened ", 6), " ")[:6], []any{1, 1, 1, 1, 1, 1})
		for i, version := range []int64{0, 1, 1, 1, 0, 1} {
			if (got[i].Version == nil) != (version == 0) || version > 0 && *got[i].Version != version || got[i].IsNew != (version > 0 && i < 5) {
				t.Errorf("event %d: %+v, want version %d", i, got[i], version)
			}
		}
		if w.held() != 2 || w.logged() != 3 {
			t.Errorf("%d in quarantine, %d in the log", w.held(), w.logged())
		}
	})

	t.Run("refuses an id that is used again", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		first, logged := given(at(day)), given(at(0))
		send(t, w.pool, appendOneSQL, []any{first, logged}, nil)
		var others []any
		for _, e := range []map[string]any{first, logged} {
			others = append(others, map[string]any{"event_id": e["event_id"], "type": "other"})
		}
		if diff := cmp.Diff([]string{"0", "1"}, complaints(t, wantCode(t, w.pool, "RW002", appendOneSQL, append(others, first), nil))); diff != "" {
			t.Error(diff)
		}
		twins := []any{given(at(2 * day)), nil}
		twins[1] = map[string]any{"event_id": twins[0].(map[string]any)["event_id"], "type": "other"}
		if diff := cmp.Diff([]string{"1"}, complaints(t, wantCode(t, w.pool, "RW002", appendOneSQL, twins, nil))); diff != "" {
			t.Error("twins:", diff)
		}
		if w.held() != 1 || w.logged() != 1 {
			t.Errorf("%d in quarantine, %d in the log", w.held(), w.logged())
		}
	})

	t.Run("takes an event once, however many send it", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		event := given(at(day))
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				if _, err := w.pool.Exec(t.Context(), appendOneSQL, []any{event}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		senders.Wait()
		if w.held() != 1 {
			t.Errorf("%d in quarantine, want 1", w.held())
		}
	})

	t.Run("is as transactional as the log", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
			for _, commit := range []bool{false, true} {
				before := w.held()
				tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
				if err != nil {
					t.Fatal(err)
				}
				send(t, tx, appendOneSQL, []any{given(at(day)), given(at(1))}, nil)
				if commit {
					err = tx.Commit(t.Context())
				} else {
					err = tx.Rollback(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := w.held() - before; commit != (got == 1) {
					t.Errorf("%s, committed %t: %d events in quarantine", level, commit, got)
				}
			}
		}
	})

	// A producer whose clock is a day ahead doesn't make every later event late.
	t.Run("keeps later events in order", func(t *testing.T) {
		t.Parallel()
		w := newGuarded(t, "quarantine")
		w.append("s", testEvent{at: 1, v: 1}, testEvent{at: day, v: 2}, testEvent{at: 2, v: 3})
		w.apply()
		for i := range 5 {
			w.append("s", testEvent{at: 10 + i, v: 10 + i})
			if late := queryOne[int64](t, w.pool, `select sum(late)::bigint from rewind.perspective_generations g, rewind.partitions p,
				rewind.apply_perspective_batch('p', p.wal_partition) where p.tree_name = 't'`); late > 0 {
				t.Errorf("event %d is late", i)
			}
		}
		w.checkSettled()
		w.exec(`select rewind.release_quarantined_event(quarantine_id) from rewind.quarantined_events`)
		w.catchUp()
		w.checkSettled()
		if diff := cmp.Diff(chain([]int{1, 3, 10, 11, 12, 13, 14, 2}), w.cursor("s").Model); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReleaseQuarantinedEvent(t *testing.T) {
	t.Parallel()
	const (
		release = `select event_id, stream_version, was_new from rewind.release_quarantined_event($1)`
		drop    = `select rewind.drop_quarantined_event($1, $2)`
	)
	w := newGuarded(t, "quarantine")
	future, old := given(at(day)), given(at(-day))
	send(t, w.pool, appendOneSQL, []any{future, old}, nil)
	id := func(e map[string]any) int64 {
		return queryOne[int64](t, w.pool, `select quarantine_id from rewind.quarantined_events where event_id = $1`, e["event_id"])
	}
	state := func(e map[string]any) string {
		return queryOne[string](t, w.pool, `select concat_ws(' ', state, drop_reason, decided_at is not null) from rewind.quarantined_events where event_id = $1`, e["event_id"])
	}

	for _, isNew := range []bool{true, false} {
		got := send(t, w.pool, release, id(future))
		if len(got) != 1 || got[0].ID != future["event_id"] || *got[0].Version != 1 || got[0].IsNew != isNew {
			t.Errorf("released: %+v, want it new: %t", got, isNew)
		}
	}
	if s := state(future); s != "released t" {
		t.Errorf("released one is %q", s)
	}
	if got := send(t, w.pool, appendOneSQL, []any{future, made()}, nil); *got[0].Version != 1 || got[0].IsNew {
		t.Errorf("a released one sent again: %+v", got[0])
	} else if late := rewind.EventTime(got[1].ID); late.After(time.UnixMilli(1_700_000_000_001)) {
		t.Errorf("what comes with it happened at %v", late)
	}
	wantCode(t, w.pool, "55000", drop, id(future), "it was wrong")

	for _, reason := range []string{"too old", "another reason"} {
		w.exec(drop, id(old), reason)
		if s := state(old); s != "dropped too old t" {
			t.Errorf("dropped one is %q", s)
		}
	}
	if got := send(t, w.pool, appendOneSQL, []any{old}, nil); got[0].Version != nil || w.held() > 0 {
		t.Errorf("a dropped one sent again: %+v, %d held", got[0], w.held())
	}
	if got := send(t, w.pool, release, id(old)); *got[0].Version != 3 || !got[0].IsNew || state(old) != "released t" {
		t.Errorf("a dropped one released: %+v, it is %q", got[0], state(old))
	}

	wantCode(t, w.pool, "22023", drop, id(old), "")
	wantCode(t, w.pool, "22023", drop, 1_000_000, "x")
	wantCode(t, w.pool, "22023", release, 1_000_000)
	wantCode(t, w.pool, "22023", `select rewind.release_quarantined_event($1, '{"a": 1}')`, id(old))

	// Once its time is no longer in the future an event gets into the log by itself; releasing it then finds it there.
	next := given(at(2 * hour))
	send(t, w.pool, appendOneSQL, []any{next}, nil)
	testdb.Advance(t, w.pool, 2*time.Hour)
	other := maps.Clone(next)
	other["payload"] = map[string]any{"v": 99}
	wantCode(t, w.pool, "RW002", appendOneSQL, []any{other}, nil)
	wantCode(t, w.pool, "RW002", appendOneSQL, []any{other, made()}, nil)
	arrived := send(t, w.pool, appendOneSQL, []any{next}, nil)
	if !arrived[0].IsNew || state(next) != "released t" {
		t.Errorf("sent when it is due: %+v, it is %q", arrived[0], state(next))
	}
	wantCode(t, w.pool, "55000", drop, id(next), "too late")
	if got := send(t, w.pool, release, id(next)); *got[0].Version != *arrived[0].Version || got[0].IsNew {
		t.Errorf("released though it is in the log: %+v, want %+v", got[0], arrived[0])
	}

	for role, may := range map[string]bool{"rewind_reader": false, "rewind_writer": false, "rewind_worker": false, "rewind_admin": true} {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `set local role `+role); err != nil {
			t.Fatal(err)
		}
		if _, err = tx.Exec(t.Context(), release, id(next)); (err == nil) != may {
			t.Errorf("%s releases: %v", role, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What was dropped stays out, whatever the guards say by now, and whatever the snapshot of who sends it again.
func TestDroppedEventStaysOut(t *testing.T) {
	t.Parallel()
	w := newGuarded(t, "quarantine")
	drop := func(e map[string]any) {
		t.Helper()
		w.exec(`select rewind.drop_quarantined_event(quarantine_id, 'a mistake') from rewind.quarantined_events where event_id = $1`, e["event_id"])
	}
	state := func(e map[string]any) string {
		return queryOne[string](t, w.pool, `select state from rewind.quarantined_events where event_id = $1`, e["event_id"])
	}
	dropped, byTime := given(at(3*hour)), timed(3*hour)
	byTime["event_id"] = send(t, w.pool, appendOneSQL, []any{dropped, byTime}, nil)[1].ID
	drop(dropped)
	drop(byTime)
	delete(byTime, "event_id")
	hold := func() map[string]any {
		e := given(at(3 * hour))
		send(t, w.pool, appendOneSQL, []any{e}, nil)
		return e
	}
	seen := map[pgx.TxIsoLevel][]map[string]any{pgx.RepeatableRead: {hold(), hold()}, pgx.Serializable: {hold(), hold()}}
	waiting := hold()

	for _, change := range []func(){
		func() { w.exec(`select rewind.set_options('{"skew_policy": "reject"}', p_tree => 't')`) },
		func() { testdb.Advance(t, w.pool, 3*time.Hour) },
	} {
		change()
		got := send(t, w.pool, appendOneSQL, []any{dropped, made(), dropped, byTime}, nil)
		if got[0].Version != nil || got[0].IsNew || got[1].Version == nil || got[2].Version != nil || got[3].Version != nil || state(dropped) != "dropped" {
			t.Errorf("dropped ones sent with another: %+v, it is %s", got, state(dropped))
		}
		for _, e := range []map[string]any{dropped, byTime} {
			if got := send(t, w.pool, appendOneSQL, []any{e}, nil); len(got) != 1 || got[0].Version != nil || got[0].IsNew {
				t.Errorf("a dropped one sent by itself: %+v", got)
			}
		}
	}
	other := maps.Clone(dropped)
	other["payload"] = map[string]any{"v": 99}
	wantCode(t, w.pool, "RW002", appendOneSQL, []any{other}, nil)
	if way := queryOne[string](t, w.pool, `select way from rewind.preview_event('p', 's', $1)`, dropped); way != "quarantine" {
		t.Errorf("its preview says %s", way)
	}

	w.exec(`select rewind.set_options('{"skew_policy": "quarantine"}', p_tree => 't')`)
	for level, events := range seen {
		for _, isHeldBefore := range []bool{true, false} {
			for i := range events {
				tx := begin(t, w.pool, pgx.TxOptions{IsoLevel: level})
				queryOne[int](t, tx, `select count(*) from rewind.wal`)
				e := events[i]
				if !isHeldBefore {
					testdb.Advance(t, w.pool, -3*time.Hour)
					e = hold()
					testdb.Advance(t, w.pool, 3*time.Hour)
				}
				drop(e)
				sent := []any{e, made()}[:i+1]
				wantCode(t, tx, "40001", appendOneSQL, sent, nil)
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tx := begin(t, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	wantCode(t, tx, "RW020", `select rewind.drop_quarantined_event(1, 'a mistake')`)

	// A statement that waits for the drop has a snapshot from before it.
	dropping, sending := begin(t, w.pool, pgx.TxOptions{}), begin(t, w.pool, pgx.TxOptions{IsoLevel: pgx.Serializable})
	if _, err := dropping.Exec(t.Context(), `select rewind.drop_quarantined_event(quarantine_id, 'a mistake') from rewind.quarantined_events where event_id = $1`, waiting["event_id"]); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		wantCode(t, sending, "40001", appendOneSQL, []any{waiting}, nil)
	}()
	waitUntilWaiting(t, w.pool, sending.Conn().PgConn().PID())
	commit(t, dropping)
	<-sent
	if n := queryOne[int](t, w.pool, `select count(*) from rewind.wal w join rewind.quarantined_events q using (stream_id, event_id) where q.state <> 'released'`); n > 0 {
		t.Errorf("%d events are in the log that were dropped", n)
	}
}

// Who drops or releases takes locks in the order in which appends do.
func TestQuarantineDecisionsDontDeadlock(t *testing.T) {
	t.Parallel()
	const decide = `select rewind.drop_quarantined_event(quarantine_id, 'a mistake') from rewind.quarantined_events`
	w := newGuarded(t, "quarantine")
	send(t, w.pool, appendOneSQL, []any{given(at(day))}, nil)
	first, second := begin(t, w.pool, pgx.TxOptions{}), begin(t, w.pool, pgx.TxOptions{})
	send(t, first, appendOneSQL, []any{made()}, nil)
	done := make(chan error, 1)
	go func() {
		_, err := second.Exec(t.Context(), decide)
		done <- err
	}()
	waitUntilWaiting(t, w.pool, second.Conn().PgConn().PID())
	if _, err := first.Exec(t.Context(), decide); err != nil {
		t.Error(err)
	}
	commit(t, first)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What was released and trimmed since is neither dropped nor appended once more.
func TestReleasedAndTrimmed(t *testing.T) {
	t.Parallel()
	w := newGuarded(t, "quarantine")
	send(t, w.pool, appendOneSQL, []any{given(at(day))}, nil)
	w.exec(`select rewind.release_quarantined_event(quarantine_id) from rewind.quarantined_events`)
	send(t, w.pool, appendOneSQL, []any{made()}, nil)
	w.exec(`select rewind.drop_perspective('p')`)
	w.exec(`select rewind.trim_tree('t', rewind.current_feed_cursor('t'))`)
	for _, decision := range []string{`release_quarantined_event(1)`, `drop_quarantined_event(1, 'a mistake')`} {
		wantCode(t, w.pool, "55000", `select rewind.`+decision)
	}
	if n := w.logged(); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestClientQuarantine(t *testing.T) {
	t.Parallel()
	w := newGuarded(t, "quarantine")
	events := []rewind.NewEvent{{ID: at(day), Type: "a"}, {ID: at(1), Type: "a"}, {Time: time.UnixMilli(1_700_000_000_000).Add(-24 * time.Hour), Type: "a"}}
	got, err := rewind.Append(t.Context(), w.pool, "t", "s", events)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if got[i].Quarantined() != want || got[i].WasNew == want {
			t.Errorf("event %d: %+v", i, got[i])
		}
	}
}
