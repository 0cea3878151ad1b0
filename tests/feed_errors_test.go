package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
)

func currentCursor(t testing.TB, pool *pgxpool.Pool) rewind.Cursor {
	t.Helper()
	at, err := rewind.CurrentCursor(ctxOf(t), pool, "t")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// wantFeedError reads from a cursor in Go and in SQL; both must fail, and say what was wanted and what there is.
func wantFeedError(t testing.TB, pool *pgxpool.Pool, at rewind.Cursor, code string, sentinel error) {
	t.Helper()
	var got error
	for _, err := range rewind.Subscribe(ctxOf(t), pool, "t", at) {
		got = err
	}
	var e *rewind.Error
	if !errors.Is(got, sentinel) || !errors.As(got, &e) {
		t.Errorf("read in Go from %v: %v, want %v", at, got, sentinel)
		return
	}
	pgErr := wantCode(t, pool, code, `select from rewind.read_feed('t', $1)`, at)
	var detail struct{ Wanted, Available json.RawMessage }
	if err := json.Unmarshal([]byte(pgErr.Detail), &detail); err != nil || detail.Wanted == nil || detail.Available == nil || pgErr.Hint == "" {
		t.Errorf("%s says in detail %s, and as hint %q", code, pgErr.Detail, pgErr.Hint)
	}
}

func TestFeedErrors(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 2)
	appendSome(t, pool, 0, 20)
	middle := rewind.Initial
	for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial) {
		if err != nil {
			t.Fatal(err)
		}
		if middle = r.Cursor(); r.Offset == 5 {
			break
		}
	}
	end := currentCursor(t, pool)

	change := func(at rewind.Cursor, key, value string) (changed rewind.Cursor) {
		text := queryOne[string](t, pool, `select jsonb_set($1::jsonb, $2::text[], $3::jsonb)::text`, at.String(), key, value)
		if err := changed.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return changed
	}
	wantFeedError(t, pool, change(end, "{offsets,1}", "1000"), "RW011", rewind.ErrCursorAhead)
	wantFeedError(t, pool, change(end, "{after,1}", `"17"`), "RW012", rewind.ErrCursorOfOtherHistory)
	wantFeedError(t, pool, change(end, "{epoch}", `"00000000-0000-4000-8000-000000000000"`), "RW012", rewind.ErrCursorOfOtherHistory)
	wantFeedError(t, pool, change(end, "{tree}", `"other"`), "RW012", rewind.ErrCursorOfOtherHistory)
	wantFeedError(t, pool, change(end, "{generation}", "2"), "RW018", rewind.ErrUnknownGeneration)
	wantFeedError(t, pool, change(end, "{offsets,7}", "0"), "RW018", rewind.ErrUnknownGeneration)
	for _, malformed := range []string{`[]`, `"end"`, `{"offset": {}}`, `{"offsets": {"a": 1}}`, `{"offsets": {"0": -1}}`, `{"offsets": [1]}`, `{"epoch": "x"}`, `{"after": {"0": "x"}}`, `{"offsets": {"00": 2}}`, `{"after": {"01": "5"}}`} {
		wantCode(t, pool, "22023", `select from rewind.read_feed('t', $1)`, malformed)
	}
	wantCode(t, pool, "RW005", `select from rewind.read_feed('nowhere')`)
	wantCode(t, pool, "22023", `select from rewind.read_feed('t', p_limit => 0)`)
	wantCode(t, pool, "22023", `select from rewind.feed_cursor_at('t')`)
	wantCode(t, pool, "22023", `select from rewind.feed_cursor_at('t', now(), 1)`)
	wantCode(t, pool, "RW011", `select from rewind.read_feed('t', null, $1)`, change(end, "{offsets,1}", "1000"))
	wantCode(t, pool, "RW012", `select from rewind.read_feed('t', null, $1)`, change(end, "{after,1}", `"17"`))
	wantCode(t, pool, "RW012", `select from rewind.trim_tree('t', $1)`, change(middle, "{after,0}", `"17"`))
	for _, text := range []string{`{"offsets": {"0": 1}} and more`, `{"offsets": {"0": 1}} {}`} {
		var c rewind.Cursor
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s is taken for a cursor", text)
		}
	}
	for when, want := range map[string]string{"-infinity": "{}", "1900-01-01": "{}", "7000-01-01": end.String(), "infinity": end.String()} {
		got := queryOne[string](t, pool, `select rewind.feed_cursor_at('t', $1::timestamptz)::text`, when)
		if page, _ := sqlPage(t, pool, got, nil, 1000, `{}`); (len(page) == 20) != (want == "{}") {
			t.Errorf("%d records are after %s", len(page), when)
		}
	}

	// One written by hand is not checked against the record before it.
	if page, _ := sqlPage(t, pool, `{"offsets": {"0": 3}}`, nil, 1000, `{}`); len(page) != 17 {
		t.Errorf("%d records from a cursor written by hand, want 17", len(page))
	}

	if _, err := rewind.TrimTree(t.Context(), pool, "t", middle); err != nil {
		t.Fatal(err)
	}
	wantFeedError(t, pool, rewind.Initial, "RW010", rewind.ErrCursorTrimmed)
	wantCode(t, pool, "RW010", `select from rewind.feed_cursor_at('t', p_hlc => 0)`)
	oldest, err := rewind.OldestCursor(t.Context(), pool, "t")
	if err != nil || oldest.String() != middle.String() {
		t.Errorf("the oldest cursor after a trim is %v, not what was trimmed to, %v (%v)", oldest, middle, err)
	}
	first := int64(0)
	for r, err := range rewind.Subscribe(t.Context(), pool, "t", oldest) {
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 || r.HLC == first { // records of other partitions with the same clock may have been trimmed
			first = r.HLC
			continue
		}
		at, err := rewind.CursorAtHLC(t.Context(), pool, "t", r.HLC)
		if err != nil || !slices.Equal(spots(t, rewind.Subscribe(t.Context(), pool, "t", r.Cursor())), spots(t, rewind.Subscribe(t.Context(), pool, "t", at))[1:]) {
			t.Errorf("the clock of a record that was not trimmed is another place than the record (%v)", err)
		}
		break
	}
}

// loseTail takes the last records off a log, as a crash with asynchronous commit does.
func loseTail(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	mustExec(t, pool, `set session_replication_role = replica;
		delete from rewind.wal w where w.wal_offset >= (select max(v.wal_offset) + 1 - `+fmt.Sprint(n)+` from rewind.wal v where v.wal_partition = w.wal_partition);
		delete from rewind.streams s where not exists (select from rewind.wal w where w.stream_id = s.stream_id);
		reset session_replication_role`)
}

func TestFeedOfLogThatLostItsTail(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 1)
	appendSome(t, pool, 0, 10)
	before, half := currentCursor(t, pool), rewind.Initial
	for r, err := range rewind.Subscribe(t.Context(), pool, "t", rewind.Initial) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset == 4 {
			half = r.Cursor()
		}
	}
	loseTail(t, pool, 2)
	wantFeedError(t, pool, before, "RW011", rewind.ErrCursorAhead)
	appendSome(t, pool, 100, 2)
	wantFeedError(t, pool, before, "RW012", rewind.ErrCursorOfOtherHistory)
	appendSome(t, pool, 102, 5)
	wantFeedError(t, pool, before, "RW012", rewind.ErrCursorOfOtherHistory)
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", half))); n != 10 {
		t.Errorf("%d records after a place that was not lost, want 10", n)
	}
}

// A database that was cloned goes its own way; a cursor of one is refused by the other as soon as they differ, or when the epoch is new.
func TestFeedOfClonedDatabase(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 1)
	appendSome(t, pool, 0, 5)
	common := currentCursor(t, pool)
	appendSome(t, pool, 5, 5)
	ours := currentCursor(t, pool)
	loseTail(t, pool, 5)
	appendSome(t, pool, 50, 5)
	wantFeedError(t, pool, ours, "RW012", rewind.ErrCursorOfOtherHistory)
	if n := len(spots(t, rewind.Subscribe(t.Context(), pool, "t", common))); n != 5 {
		t.Errorf("%d records after what both have, want 5", n)
	}
	mustExec(t, pool, `update rewind.settings set store_epoch = gen_random_uuid()`)
	wantFeedError(t, pool, common, "RW012", rewind.ErrCursorOfOtherHistory)
}
