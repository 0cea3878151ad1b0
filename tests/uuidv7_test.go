package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

func TestUUIDv7(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var last string
	check := func(n int) {
		t.Helper()
		for _, id := range queryOne[[]uuid.UUID](t, conn, `select array_agg(rewind.uuidv7()) from generate_series(1, $1)`, n) {
			if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
				t.Fatalf("%v is not a UUIDv7", id)
			}
			if id.String() <= last {
				t.Fatalf("%v does not come after %s", id, last)
			}
			last = id.String()
		}
	}
	check(1000)
	if got := rewind.EventTime(uuid.MustParse(last)); time.Since(got).Abs() > time.Minute {
		t.Errorf("an id of now says %v", got)
	}
	// A clock that stands still, one that steps back, and again the true one.
	now := time.Now().Add(time.Second)
	testdb.SetClock(t, pool, now)
	check(1000)
	testdb.Advance(t, pool, -time.Hour)
	check(1000)
	check(1)
	testdb.Advance(t, pool, 2*time.Hour)
	check(10)
	if got := rewind.EventTime(uuid.MustParse(last)); got.Sub(now.Add(time.Hour)).Abs() > time.Second {
		t.Errorf("an id of %v says %v", now.Add(time.Hour), got)
	}
}

// An id made of a time says that time, orders by time, then by rank, and depends on everything that the event says.
func TestEventID(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	type event struct {
		at                         time.Time
		rank                       int
		tree, tenant, stream, kind string
		payload, metadata          *string
	}
	makeID := func(e event) uuid.UUID {
		return queryOne[uuid.UUID](t, pool, `select rewind.event_id($1, $2, $3, $4, $5, $6::text::jsonb, $7::text::jsonb, jsonb_build_object('tenant_id', $8::text))`,
			e.at, e.rank, e.tree, e.stream, e.kind, e.payload, e.metadata, e.tenant)
	}
	name := rapid.StringMatching(`[a-cé]{0,4}`)
	document := rapid.Map(rapid.SampledFrom([]string{"", `1`, `"a"`, `{"a": [1, {}]}`, `null`}), func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	})
	events := rapid.Custom(func(t *rapid.T) event {
		return event{
			at:       time.UnixMicro(rapid.Int64Range(0, 4_102_444_800_000_000).Draw(t, "time")).UTC(),
			rank:     rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1<<20-1)).Draw(t, "rank"),
			tree:     name.Draw(t, "tree"),
			tenant:   name.Draw(t, "tenant"),
			stream:   name.Draw(t, "stream"),
			kind:     name.Draw(t, "type"),
			payload:  document.Draw(t, "payload"),
			metadata: document.Draw(t, "metadata"),
		}
	})
	says := func(e event) string {
		text := func(s *string) string {
			if s == nil || *s == "null" {
				return "none"
			}
			return *s
		}
		return fmt.Sprintf("%d %d %q %q %q %q %s %s", e.at.UnixMicro(), e.rank, e.tree, e.tenant, e.stream, e.kind, text(e.payload), text(e.metadata))
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := events.Draw(rt, "a"), events.Draw(rt, "b")
		if rapid.Bool().Draw(rt, "equal times") {
			b.at = a.at
		}
		idA, idB := makeID(a), makeID(b)
		for _, e := range []struct {
			event
			id uuid.UUID
		}{{a, idA}, {b, idB}} {
			if e.id.Version() != 7 || e.id.Variant() != uuid.RFC4122 {
				rt.Fatalf("%v is not a UUIDv7", e.id)
			}
			if got := rewind.EventTime(e.id); !got.Equal(e.at) {
				rt.Fatalf("%v says %v, not %v", e.id, got, e.at)
			}
			if got := queryOne[time.Time](t, pool, `select rewind.event_time($1)`, e.id); !got.Equal(e.at) {
				rt.Fatalf("event_time of %v is %v, not %v", e.id, got, e.at)
			}
			if again := makeID(e.event); again != e.id {
				rt.Fatalf("%v, and then %v", e.id, again)
			}
		}
		if (says(a) == says(b)) != (idA == idB) {
			rt.Fatalf("%s: %v\n%s: %v", says(a), idA, says(b), idB)
		}
		if first := a.at.Before(b.at) || a.at.Equal(b.at) && a.rank < b.rank; first && idA.String() >= idB.String() {
			rt.Fatalf("%s: %v\n%s: %v", says(a), idA, says(b), idB)
		}
	})
	for _, c := range []string{
		`select rewind.event_id('1969-12-31', 0, 't', 's', 'a', null, null)`,
		`select rewind.event_id('20000-01-01', 0, 't', 's', 'a', null, null)`,
		`select rewind.event_id(null, 0, 't', 's', 'a', null, null)`,
		`select rewind.event_id(now(), -1, 't', 's', 'a', null, null)`,
		`select rewind.event_id(now(), 1048576, 't', 's', 'a', null, null)`,
		`select rewind.event_id(now(), 0, 't', 's', 'a', null, null, '{"unknown": 1}')`,
	} {
		wantCode(t, pool, "22023", c)
	}
}

func TestStreamID(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	for call, hashed := range map[string]string{
		`rewind.stream_id('t', 's')`:                       `sha256('t\000\000s')`,
		`rewind.stream_id('t', 's', '{"tenant_id": "x"}')`: `sha256('t\000x\000s')`,
		`rewind.stream_id('ü', '', '{"tenant_id": null}')`: `sha256('\303\274\000\000')`,
		`rewind.stream_id('t', 'xs', '{"tenant_id": ""}')`: `sha256('t\000\000xs')`,
	} {
		if !queryOne[bool](t, pool, `select `+call+` = encode(substr(`+hashed+`, 1, 16), 'hex')::uuid`) {
			t.Errorf("%s is not of %s", call, hashed)
		}
	}
	wantCode(t, pool, "22023", `select rewind.stream_id('t', 's', '{"tenant": "x"}')`)
}
