package tests

import (
	"encoding/json"
	"fmt"
	"strings"
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

// newLog returns a database with a tree "t" of some partitions.
func newLog(t testing.TB, partitions int) *pgxpool.Pool {
	t.Helper()
	pool := testdb.New(t)
	if err := rewind.CreateTree(ctxOf(t), pool, "t", partitions); err != nil {
		t.Fatal(err)
	}
	return pool
}

type place struct {
	EventID       uuid.UUID
	WalPartition  int32
	WalOffset     int64
	StreamVersion int64
	HLC           int64
	WasNew        bool
}

// appendJSON calls append_events of tree "t".
func appendJSON(t testing.TB, db rewind.DBTX, stream, events string, more ...any) []place {
	t.Helper()
	rows, err := db.Query(ctxOf(t), `select * from rewind.append_events('t', $1, $2, $3)`, stream, events, first(more))
	if err != nil {
		t.Fatal(err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func first(values []any) any {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// complaints returns what an error about events says: the index and the field of each complaint.
func complaints(t testing.TB, err *pgconn.PgError) (list []string) {
	t.Helper()
	var detail struct {
		Errors []struct {
			Index *int
			Field *string
		}
	}
	if e := json.Unmarshal([]byte(err.Detail), &detail); e != nil {
		t.Fatalf("detail %q: %v", err.Detail, e)
	}
	for _, e := range detail.Errors {
		text := "-"
		if e.Index != nil {
			text = fmt.Sprint(*e.Index)
		}
		if e.Field != nil {
			text += " " + *e.Field
		}
		list = append(list, text)
	}
	return list
}

func TestAppendEvents(t *testing.T) {
	t.Parallel()

	t.Run("gives versions, offsets and clocks without holes", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		a := appendJSON(t, pool, "s", `[{"type":"a"},{"type":"b"},{"type":"c"}]`)
		b := appendJSON(t, pool, "r", `[{"type":"a"}]`)
		c := appendJSON(t, pool, "s", `[{"type":"d"}]`)
		all := append(append(a, b...), c...)
		for i, p := range all {
			if p.WalOffset != int64(i) || !p.WasNew {
				t.Errorf("event %d stands at %+v", i, p)
			}
			if i > 0 && p.HLC <= all[i-1].HLC {
				t.Errorf("the clock of event %d does not advance", i)
			}
			if ms := p.HLC >> 16; time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
				t.Errorf("the clock of event %d is at %v", i, time.UnixMilli(ms))
			}
		}
		if c[0].StreamVersion != 4 || b[0].StreamVersion != 1 {
			t.Errorf("versions %d and %d", c[0].StreamVersion, b[0].StreamVersion)
		}
	})

	t.Run("takes nothing for nothing", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		if places := appendJSON(t, pool, "s", `[]`, 7); len(places) != 0 {
			t.Error(places)
		}
	})

	t.Run("stores what it was given", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		for stream, events := range map[string]string{
			"one":  `[{"type":"a","payload":{"x":[1,null]},"metadata":{"by":"me"}}]`,
			"two":  `[{"type":"a","payload":{"x":[1,null]},"metadata":{"by":"me"}},{"type":"b","payload":null,"metadata":null}]`,
			"null": `[{"type":"b","payload":null}]`,
		} {
			appendJSON(t, pool, stream, events)
		}
		got := texts(t, pool, `select format('%s %s %s %s %s %s', stream_key, event_type, payload, metadata, kind, mode)
			from rewind.wal join rewind.streams using (stream_id) order by stream_key, stream_version`)
		want := []string{
			`null b   6 `,
			`one a {"x": [1, null]} {"by": "me"} 6 `,
			`two a {"x": [1, null]} {"by": "me"} 6 `,
			`two b   6 `,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("returns what the stream has with its first place", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		one, two := at(1), at(2)
		event := func(id uuid.UUID, kind, payload string) string {
			return fmt.Sprintf(`{"event_id":"%s","type":"%s","payload":%s,"metadata":{"n":%d}}`, id, kind, payload, time.Now().UnixNano())
		}
		was := appendJSON(t, pool, "s", "["+event(one, "a", `{"x":1.0}`)+"]", 0)[0]
		was.WasNew = false
		// Once by itself, once among others; whatever version is expected.
		if again := appendJSON(t, pool, "s", "["+event(one, "a", `{"x":1}`)+"]", 17); again[0] != was {
			t.Errorf("again %+v, was %+v", again[0], was)
		}
		again := appendJSON(t, pool, "s", "["+event(two, "b", "2")+","+event(one, "a", `{"x":1}`)+","+event(two, "b", "2")+"]", 1)
		if again[1] != was {
			t.Errorf("again %+v, was %+v", again[1], was)
		}
		if !again[0].WasNew || again[2].WasNew || again[2].StreamVersion != again[0].StreamVersion {
			t.Errorf("twice in one call: %+v", again)
		}
		all := appendJSON(t, pool, "s", "["+event(two, "b", "2")+","+event(one, "a", `{"x":1}`)+"]", 99)
		if all[0].WasNew || all[1] != was {
			t.Errorf("nothing new: %+v", all)
		}
		if n := queryOne[int64](t, pool, `select count(*) from rewind.wal`); n != 2 {
			t.Errorf("%d records, want 2", n)
		}
	})

	t.Run("refuses an id with other content", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		id, other := at(1), at(2)
		appendJSON(t, pool, "s", fmt.Sprintf(`[{"event_id":"%s","type":"a","payload":{"x":1}}]`, id))
		for events, want := range map[string][]string{
			fmt.Sprintf(`[{"event_id":"%s","type":"b","payload":{"x":1}}]`, id):                              {"0"},
			fmt.Sprintf(`[{"event_id":"%s","type":"a","payload":{"x":2}}]`, id):                              {"0"},
			fmt.Sprintf(`[{"event_id":"%s","type":"a"}]`, id):                                                {"0"},
			fmt.Sprintf(`[{"type":"n"},{"event_id":"%s","type":"b"},{"event_id":"%[1]s","type":"c"}]`, id):   {"1", "2"},
			fmt.Sprintf(`[{"event_id":"%s","type":"n"},{"event_id":"%[1]s","type":"n","payload":1}]`, other): {"1"},
		} {
			err := wantCode(t, pool, "RW002", `select rewind.append_events('t', 's', $1, 55)`, events)
			if diff := cmp.Diff(want, complaints(t, err)); diff != "" {
				t.Errorf("%s: %s", events, diff)
			}
		}
		if n := queryOne[int64](t, pool, `select count(*) from rewind.wal`); n != 1 {
			t.Errorf("%d records, want 1", n)
		}
		// The same id in another stream is another event.
		appendJSON(t, pool, "r", fmt.Sprintf(`[{"event_id":"%s","type":"b"}]`, id))
	})

	t.Run("refuses a stale expected version", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		appendJSON(t, pool, "s", `[{"type":"a"}]`, 0)
		appendJSON(t, pool, "s", `[{"type":"a"},{"type":"b"}]`, 1)
		for events, want := range map[string][]string{`[{"type":"a"}]`: {"0"}, `[{"type":"a"},{"type":"b"}]`: {"0", "1"}} {
			for _, version := range []int{0, 2, 4, -1} {
				err := wantCode(t, pool, "RW001", `select rewind.append_events('t', 's', $1, $2)`, events, version)
				if diff := cmp.Diff(want, complaints(t, err)); diff != "" {
					t.Error(diff)
				}
				if !strings.Contains(err.Detail, `"stream_version": 3`) {
					t.Errorf("detail %s", err.Detail)
				}
			}
			wantCode(t, pool, "RW001", `select rewind.append_events('t', 'new', $1, 1)`, events)
		}
	})

	t.Run("names every malformed event and stores nothing", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		long := strings.Repeat("x", 501)
		for events, want := range map[string][]string{
			`{"type":"a"}`:                         {"- events"},
			`"a"`:                                  {"- events"},
			`[5]`:                                  {"0"},
			`[{}]`:                                 {"0 type"},
			`[{"type":5}]`:                         {"0 type"},
			`[{"type":"` + long + `"}]`:            {"0 type"},
			`[{"type":"a","Payload":1,"extra":2}]`: {"0 Payload", "0 extra"},
			`[{"type":"a","event_id":"` + uuid.NewString()[:35] + `"}]`:             {"0 event_id"},
			`[{"type":"a","event_id":5}]`:                                           {"0 event_id"},
			`[{"type":"a","event_id":"` + at(1).String() + `","time":5}]`:           {"0 time"},
			`[{"type":"a"},[],{"type":null,"time":"now"},{"type":"a","time":true}]`: {"1", "2 type", "2 time", "3 time"},
		} {
			err := wantCode(t, pool, "RW017", `select rewind.append_events('t', 's', $1)`, events)
			if diff := cmp.Diff(want, complaints(t, err)); diff != "" {
				t.Errorf("%.80s: %s", events, diff)
			}
		}
		wantCode(t, pool, "RW017", `select rewind.append_events('t', 's', null)`)
		if n := queryOne[int64](t, pool, `select count(*) from rewind.streams`); n != 0 {
			t.Errorf("%d streams", n)
		}
		// JSON that jsonb can't hold never gets here.
		wantCode(t, pool, "22P05", `select rewind.append_events('t', 's', $1::text::jsonb)`, `[{"type":"a","payload":"\u0000"}]`)
	})

	t.Run("refuses ids that are no UUIDv7 or too far ahead", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		v4, wrongVariant, ahead := uuid.New(), at(1), uuid.Must(uuid.NewV7())
		wrongVariant[8] = 0xc0 | wrongVariant[8]&0x3f
		ahead[0] = 0x7f
		soon := time.Now().Add(time.Hour).Format(time.RFC3339)
		id := func(id uuid.UUID) string { return fmt.Sprintf(`{"type":"a","event_id":"%s"}`, id) }
		for _, c := range []struct {
			code, events string
			want         []string
		}{
			{"RW003", "[" + id(v4) + "]", []string{"0 event_id"}},
			{"RW003", "[" + id(uuid.Nil) + "," + id(at(1)) + "," + id(wrongVariant) + "," + id(ahead) + "]", []string{"0 event_id", "2 event_id"}},
			{"RW004", "[" + id(ahead) + "]", []string{"0 event_id"}},
			{"RW004", `[{"type":"a","time":"` + soon + `"}]`, []string{"0 time"}},
			{"RW004", "[" + id(at(1)) + "," + id(ahead) + `,{"type":"a"},{"type":"a","time":"` + soon + `"}]`, []string{"1 event_id", "3 time"}},
		} {
			err := wantCode(t, pool, c.code, `select rewind.append_events('t', 's', $1)`, c.events)
			if diff := cmp.Diff(c.want, complaints(t, err)); diff != "" {
				t.Errorf("%s: %s", c.events, diff)
			}
		}

		mustExec(t, pool, `select rewind.set_options('{"max_clock_skew": "2h"}', p_tree => 't')`)
		appendJSON(t, pool, "s", `[{"type":"a","time":"`+soon+`"}]`)
		mustExec(t, pool, `select rewind.set_options('{"max_clock_skew": null}', p_tree => 't')`)
		wantCode(t, pool, "RW004", `select rewind.append_events('t', 's', $1)`, `[{"type":"b","time":"`+soon+`"}]`)
	})

	t.Run("says the first of several errors", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		known := at(1)
		appendJSON(t, pool, "s", fmt.Sprintf(`[{"event_id":"%s","type":"a"}]`, known))
		ahead := uuid.Must(uuid.NewV7())
		ahead[0] = 0x7f
		malformed, v4, future := `{}`, `{"type":"a","event_id":"`+uuid.NewString()+`"}`, `{"type":"a","event_id":"`+ahead.String()+`"}`
		reused, fresh := `{"type":"b","event_id":"`+known.String()+`"}`, `{"type":"c"}`
		long := strings.Repeat("x", 501)
		for _, c := range []struct{ code, tree, stream, events, options string }{
			{"RW005", "nowhere", long, malformed, `{"unknown": 1}`},
			{"RW005", "nowhere", "s", malformed, `{}`},
			{"22023", "t", "s", malformed, `{"unknown": 1}`},
			{"22023", "t", long, malformed, `{}`},
			{"22023", "t", "s", malformed, `{"tenant_id": "` + long + `"}`},
			{"22023", "t", "s", malformed, `{"tenant_id": 5}`},
			{"22023", "t", "s", malformed, `[]`},
			{"RW017", "t", "s", v4 + "," + future + "," + reused + "," + malformed, `{}`},
			{"RW003", "t", "s", future + "," + v4 + "," + reused, `{}`},
			{"RW004", "t", "s", reused + "," + future, `{}`},
			{"RW002", "t", "s", fresh + "," + reused, `{}`},
			{"RW001", "t", "s", fresh, `{}`},
		} {
			wantCode(t, pool, c.code, `select rewind.append_events($1, $2, $3, 7, $4)`, c.tree, c.stream, "["+c.events+"]", c.options)
		}
	})

	t.Run("takes any text as a name", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 3)
		for _, name := range []string{"", " ", `'"\`, "ünïcødé ☃ 🎉", strings.Repeat("é", 250), "NULL", "a\nb\t"} {
			event, _ := json.Marshal([]map[string]string{{"type": name}})
			if _, err := pool.Exec(t.Context(), `select rewind.append_events('t', $1, $2, 0, jsonb_build_object('tenant_id', $1::text))`, name, event); err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			got := queryOne[string](t, pool, `select event_type from rewind.read_stream('t', $1, p_options => jsonb_build_object('tenant_id', $1::text))`, name)
			if got != name {
				t.Errorf("%q came back as %q", name, got)
			}
		}
	})

	t.Run("keeps tenants and trees apart", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 1)
		mustExec(t, pool, `select rewind.create_tree('u', 1)`)
		for _, call := range []string{
			`select rewind.append_events('t', 's', '[{"type":"a"}]', 0)`,
			`select rewind.append_events('t', 's', '[{"type":"a"}]', 0, '{"tenant_id": "x"}')`,
			`select rewind.append_events('t', 's', '[{"type":"a"}, {"type":"b"}]', 0, '{"tenant_id": "y"}')`,
			`select rewind.append_events('t', 's', '[{"type":"a"}]', 1, '{"tenant_id": null}')`,
			`select rewind.append_events('u', 's', '[{"type":"a"}]', 0)`,
		} {
			mustExec(t, pool, call)
		}
		if n := queryOne[int64](t, pool, `select count(distinct stream_id) from rewind.streams`); n != 4 {
			t.Errorf("%d streams, want 4", n)
		}
		if n := queryOne[int64](t, pool, `select count(*) from rewind.streams where stream_id <> rewind.stream_id(
			(select tree_name from rewind.trees where trees.tree_id = streams.tree_id), stream_key, jsonb_build_object('tenant_id', tenant_id))`); n != 0 {
			t.Errorf("%d streams have another id than stream_id says", n)
		}
	})
}

// The ways of appending agree about where streams live and what their next version is.
func TestAppendWaysAgree(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 7)
	for round := range 3 {
		for i := range 30 {
			stream := fmt.Sprint("s", i)
			version := int64(4 * round)
			appendJSON(t, pool, stream, `[{"type":"a"}]`, version)
			appendJSON(t, pool, stream, `[{"type":"a"},{"type":"b"}]`, version+1)
			mustExec(t, pool, fmt.Sprintf(`select rewind.append_batch('t', array['%s'], array[null]::uuid[], array['c'], array[null]::jsonb[])`, stream))
		}
	}
	wantDense(t, pool)
	if n := queryOne[int64](t, pool, `select count(distinct wal_partition) from rewind.streams`); n < 5 {
		t.Errorf("30 streams live in %d of 7 partitions", n)
	}
	if n := queryOne[int64](t, pool, `select count(*) from rewind.streams s
		where s.wal_partition <> ('x' || left(s.stream_id::text, 8))::bit(32)::bigint % 2147483648 % 7`); n != 0 {
		t.Errorf("%d streams live elsewhere than their id says", n)
	}
}

// wantDense checks what must hold of any log: no holes in offsets and versions, clocks that ascend with offsets, each stream in one
// partition, and every record's stream known.
func wantDense(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for what, query := range map[string]string{
		"offsets": `select count(*) from (
			select wal_offset - row_number() over (partition by tree_id, wal_partition order by wal_offset) as d from rewind.wal) q where d <> -1`,
		"versions": `select count(*) from (
			select stream_version - row_number() over (partition by stream_id order by wal_partition, wal_offset) as d from rewind.wal) q where d <> 0`,
		"clocks": `select count(*) from (
			select hlc, lag(hlc) over (partition by tree_id, wal_partition order by wal_offset) as before from rewind.wal) q where hlc <= before`,
		"streams": `select count(*) from rewind.wal w left join rewind.streams s on
			s.stream_id = w.stream_id and s.tree_id = w.tree_id and (s.wal_partition = w.wal_partition or w.stream_version > 1)
			where s.stream_id is null`,
		"empty streams": `select count(*) from rewind.streams s where not exists (select from rewind.wal w where w.stream_id = s.stream_id)`,
	} {
		if n := queryOne[int64](t, pool, query); n != 0 {
			t.Errorf("%s: %d are wrong", what, n)
		}
	}
}

func TestAppendTimes(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	for text, want := range map[string]string{
		`"2024-02-29T12:34:56Z"`:           "2024-02-29 12:34:56",
		`"2024-02-29t12:34:56.123456z"`:    "2024-02-29 12:34:56.123456",
		`"2024-02-29 12:34:56.5+05:30"`:    "2024-02-29 07:04:56.5",
		`"2024-02-29T12:34:56.123456789Z"`: "2024-02-29 12:34:56.123457",
		`"2016-12-31T23:59:60Z"`:           "2017-01-01 00:00:00",
		`"1969-12-31T23:30:00-01:00"`:      "1970-01-01 00:30:00",
		`1700000000000`:                    "2023-11-14 22:13:20",
		`1700000000000.25`:                 "2023-11-14 22:13:20.00025",
		`0`:                                "1970-01-01 00:00:00",
		`1.7e12`:                           "2023-11-14 22:13:20",
	} {
		for _, events := range []string{`[{"type":"a","time":` + text + `}]`, `[{"type":"a","time":` + text + `},{"type":"b","time":0}]`} {
			id := appendJSON(t, pool, text, events)[0].EventID
			if got := queryOne[string](t, pool, `select (rewind.event_time($1) at time zone 'utc')::text`, id); got != want {
				t.Errorf("%s is %s, want %s", text, got, want)
			}
		}
	}
	for _, text := range []string{
		`"2023-02-29T00:00:00Z"`, `"2024-02-30T00:00:00Z"`, `"2024-04-31T00:00:00Z"`, `"1900-02-29T00:00:00Z"`, `"2024-13-01T00:00:00Z"`,
		`"2024-00-01T00:00:00Z"`, `"2024-01-00T00:00:00Z"`, `"2024-01-01T24:00:00Z"`, `"2024-01-01T00:60:00Z"`, `"2024-01-01T00:00:61Z"`,
		`"2024-01-01T00:00:00"`, `"2024-01-01"`, `"now"`, `""`, `"2024-01-01T00:00:00+24:00"`, `"0000-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`,
		`"2024-01-01T00:00:00Z\n"`, `-1`, `1e400`, `281474976710656`, `"1700000000000"`, `{}`, `[]`, `false`,
	} {
		wantCode(t, pool, "RW017", `select rewind.append_events('t', 's', $1)`, `[{"type":"a","time":`+text+`}]`)
	}
}

// Events with their time get the same ids whenever and however they are appended, in the order given, and twins stay two.
func TestAppendWithTimeIsRepeatable(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	event := `{"type":"a","time":"2024-02-29T12:00:00Z","payload":{"x":1}}`
	other := `{"type":"b","time":"2024-02-29T12:00:00Z"}`
	call := "[" + event + "," + other + "," + event + "," + event + "]"
	was := appendJSON(t, pool, "s", call)
	for i, p := range was {
		if !p.WasNew || i > 0 && strings.Compare(p.EventID.String(), was[i-1].EventID.String()) <= 0 {
			t.Errorf("event %d: %+v", i, p)
		}
	}
	for i, p := range appendJSON(t, pool, "s", call) {
		if p.WasNew || p.EventID != was[i].EventID {
			t.Errorf("again, event %d: %+v", i, p)
		}
	}
	if p := appendJSON(t, pool, "s", "["+event+"]")[0]; p.WasNew || p.EventID != was[0].EventID {
		t.Errorf("the first by itself: %+v", p)
	}
	want := queryOne[uuid.UUID](t, pool, `select rewind.event_id('2024-02-29T12:00:00Z', 2, 't', 's', 'a', '{"x": 1}', null)`)
	if was[2].EventID != want {
		t.Errorf("id %v, event_id says %v", was[2].EventID, want)
	}
}

// Ids made by the database ascend in each stream, past ids that were given, as long as these are within the tolerated skew.
func TestAppendMakesAscendingIDs(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	testdb.SetClock(t, pool, now)
	ahead := func(d time.Duration) string {
		return queryOne[string](t, pool, `select rewind.event_id($1, 0, 't', 's', 'x', null, null)::text`, now.Add(d))
	}
	ascending := func(places []place) {
		t.Helper()
		for i := 1; i < len(places); i++ {
			if places[i].EventID.String() <= places[i-1].EventID.String() {
				t.Errorf("event %d does not come after event %d: %v, %v", i, i-1, places[i-1].EventID, places[i].EventID)
			}
		}
	}

	// The clock stands still: ids go on all the same.
	var all []place
	for range 3 {
		all = append(all, appendJSON(t, pool, "s", `[{"type":"a"}]`)...)
		all = append(all, appendJSON(t, pool, "s", `[{"type":"a"},{"type":"b"},{"type":"c"}]`)...)
	}
	ascending(all)

	// Ids given between push those after them, not those before.
	mixed := appendJSON(t, pool, "s", fmt.Sprintf(
		`[{"type":"a"},{"type":"b","event_id":"%s"},{"type":"c"},{"type":"d"},{"type":"e","event_id":"%s"},{"type":"f"}]`,
		ahead(10*time.Second), ahead(20*time.Second)))
	ascending(mixed)
	if got := rewind.EventTime(mixed[0].EventID); got.Sub(now) > time.Second {
		t.Errorf("what was appended before a later event happened at %v", got)
	}
	ascending(append(mixed, appendJSON(t, pool, "s", `[{"type":"g"}]`)...))

	// The clock steps back by less than the skew: after the newest. By more: now.
	testdb.Advance(t, pool, -30*time.Second)
	ascending(append(mixed, appendJSON(t, pool, "s", `[{"type":"h"}]`)...))
	testdb.Advance(t, pool, -time.Hour)
	for _, events := range []string{`[{"type":"i"}]`, `[{"type":"i"},{"type":"j"}]`} {
		places := appendJSON(t, pool, "s", events)
		ascending(places)
		if got := now.Add(-time.Hour - 30*time.Second).Sub(rewind.EventTime(places[0].EventID)); got.Abs() > time.Second {
			t.Errorf("with a newest id far ahead, an event of now is off by %v", got)
		}
	}
}

func TestAppendOnly(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	appendJSON(t, pool, "s", `[{"type":"a"}]`)
	for _, statement := range []string{
		`update rewind.wal set payload = '1'`, `delete from rewind.wal`, `truncate rewind.wal`,
		`update rewind.streams set tenant_id = 'x'`, `delete from rewind.streams`, `truncate rewind.streams`,
	} {
		wantCode(t, pool, "55000", statement)
	}
}

// Nobody but the system says what the system did, or holds it up.
func TestSystemTreeIsReserved(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	for _, statement := range []string{
		`select from rewind.append_events('$system', 's', '[{"type": "said"}]')`,
		`select from rewind.append_events('$system', 's', '[]')`,
		`select from rewind.append_batch('$system', '{s}', '{null}', '{said}', '{null}')`,
		`select from rewind.lock_streams('$system', '{s}')`,
	} {
		if err := wantCode(t, pool, "22023", statement); !strings.Contains(err.Message, "reserved") {
			t.Errorf("%s: %s", statement, err.Message)
		}
	}
	mustExec(t, pool, `select from rewind.publish_system_event('Said', 's', '{"n": 1}')`)
	if got := queryOne[string](t, pool, `select event_type || payload::text from rewind.read_stream('$system', 's')`); got != `Said{"n": 1}` {
		t.Errorf("the system said %q", got)
	}
	wantCode(t, pool, "22023", `select from rewind.publish_system_event('Said', null, '{}')`)
	wantCode(t, pool, "RW017", `select from rewind.publish_system_event(null, 's', '{}')`)
}
