package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/rewindpg/rewind"
)

func TestReadStream(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 2)
	ids := []uuid.UUID{at(30), at(10), at(20), at(40), at(5)}
	for i, id := range ids {
		appendJSON(t, pool, "s", fmt.Sprintf(`[{"event_id":"%s","type":"e%d"}]`, id, i))
		appendJSON(t, pool, "other", `[{"type":"x"}]`)
	}
	for call, want := range map[string][]string{
		`'t', 's'`:                                                           {"e4", "e1", "e2", "e0", "e3"},
		`'t', 's', 'chronology', p_limit => 2`:                               {"e4", "e1"},
		`'t', 's', 'arrival'`:                                                {"e0", "e1", "e2", "e3", "e4"},
		`'t', 's', 'arrival', p_limit => 2`:                                  {"e0", "e1"},
		`'t', 's', 'arrival', p_after_version => 3`:                          {"e3", "e4"},
		`'t', 's', 'arrival', p_after_version => 5`:                          {},
		`'t', 's', 'chronology', p_after_version => 3`:                       {"e4", "e3"},
		`'t', 's', p_after_event_id => '` + ids[2].String() + `'`:            {"e0", "e3"},
		`'t', 's', 'arrival', p_after_event_id => '` + ids[2].String() + `'`: {"e0", "e3"},
		`'t', 's', p_after_event_id => '` + ids[3].String() + `'`:            {},
		`'t', 's', p_limit => null`:                                          {"e4", "e1", "e2", "e0", "e3"},
		`'t', 's', p_limit => 0`:                                             {},
		`'t', 'nobody'`:                                                      {},
		`'t', 's', p_options => '{"tenant_id": "x"}'`:                        {},
	} {
		if diff := cmp.Diff(want, texts(t, pool, `select event_type from rewind.read_stream(`+call+`)`)); diff != "" {
			t.Errorf("%s: %s", call, diff)
		}
	}
	if got := texts(t, pool, `select distinct tree_name || '/' || tenant_id || '/' || stream_key from rewind.read_stream('t', 's')`); len(got) != 1 || got[0] != "t//s" {
		t.Errorf("names %q", got)
	}
	wantCode(t, pool, "RW005", `select rewind.read_stream('nowhere', 's')`)
	wantCode(t, pool, "22023", `select rewind.read_stream('t', 's', 'time')`)
	wantCode(t, pool, "22023", `select rewind.read_stream('t', 's', null)`)
	wantCode(t, pool, "22023", `select rewind.read_stream('t', 's', p_options => '{"unknown": 1}')`)
	wantCode(t, pool, "22023", `select rewind.read_stream('t', 's', p_after_version => 1, p_after_event_id => rewind.uuidv7())`)
}

// The client pages through long streams, in both orders, without losing or repeating any.
func TestReadStreamPages(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	const n = 2500
	mustExec(t, pool, fmt.Sprintf(`
		select rewind.append_batch('t', array_agg('s'::text), array_agg(rewind.event_id(to_timestamp(1700000000 + i * 7919 %% %d), i, 't', 's', 'a', null, null)),
		  array_agg('a'::text), array_agg(null::jsonb))
		from generate_series(1, %[1]d) i`, n))
	chronology := collect(t, rewind.ReadStream(t.Context(), pool, "t", "s"))
	arrival := collect(t, rewind.ReadStream(t.Context(), pool, "t", "s", rewind.ByArrival()))
	if len(chronology) != n || len(arrival) != n {
		t.Fatalf("%d and %d records, want %d", len(chronology), len(arrival), n)
	}
	if !slices.IsSortedFunc(chronology, func(a, b rewind.Record) int { return slices.Compare(a.EventID[:], b.EventID[:]) }) {
		t.Error("not in chronology")
	}
	for i, r := range arrival {
		if r.StreamVersion != int64(i+1) {
			t.Fatalf("record %d has version %d", i, r.StreamVersion)
		}
	}
	if got := collect(t, rewind.ReadStream(t.Context(), pool, "t", "s", rewind.AfterEvent(chronology[1499].EventID))); len(got) != 1000 || got[0].EventID != chronology[1500].EventID {
		t.Errorf("%d records after the 1500th", len(got))
	}
	if got := collect(t, rewind.ReadStream(t.Context(), pool, "t", "s", rewind.AfterVersion(2499))); len(got) != 1 || got[0].StreamVersion != 2500 {
		t.Errorf("%d records after version 2499", len(got))
	}
	for r := range rewind.ReadStream(t.Context(), pool, "t", "s") {
		if r.EventID != chronology[0].EventID {
			t.Error("another first record")
		}
		break
	}
}

// A page costs the same wherever it is in a long stream, and an append the same whatever is there, with plans made on empty tables, on
// grown ones without statistics, and on analysed ones.
func TestLogPlanStability(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	mustExec(t, pool, `alter table rewind.wal set (autovacuum_enabled = off)`)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	statements := map[string]string{
		"single":    `select rewind.append_events('t', 's', '[{"type":"a"}]')`,
		"with id":   `select rewind.append_events('t', 's', jsonb_build_array(jsonb_build_object('type', 'a', 'event_id', rewind.uuidv7())))`,
		"many":      `select rewind.append_events('t', 's', '[{"type":"a"},{"type":"b"}]')`,
		"batch":     `select rewind.append_batch('t', array['s', 'r'], array[rewind.uuidv7(), null], array['a', 'a'], array[null, null]::jsonb[])`,
		"page":      `select from rewind.read_stream('t', 's', p_limit => 10)`,
		"last page": `select from rewind.read_stream('t', 's', p_after_event_id => (select event_id from rewind.wal where tree_id > 1 and wal_partition = 0 order by tree_id desc, wal_partition desc, wal_offset desc offset 30 limit 1), p_limit => 10)`,
		"arrival":   `select from rewind.read_stream('t', 's', 'arrival', p_after_version => 5, p_limit => 10)`,
	}
	// Blocks, not time: they are the same on a busy machine.
	measure := func() map[string]int {
		t.Helper()
		least := map[string]int{}
		for name, sql := range statements {
			for i := range 10 {
				plan := queryOne[[]struct {
					Plan struct {
						Hit  int `json:"Shared Hit Blocks"`
						Read int `json:"Shared Read Blocks"`
					}
				}](t, conn, `explain (analyze, buffers, format json) `+sql)[0].Plan
				// Making a plan touches blocks of the catalog.
				if n := plan.Hit + plan.Read; i == 0 || n < least[name] {
					least[name] = n
				}
			}
		}
		return least
	}
	empty := measure()
	exec(`analyze rewind.wal`)
	measure() // plans that know that the table is tiny
	for range 30 {
		exec(`select rewind.append_batch('t', array_agg('s'::text), array_agg(null::uuid), array_agg('a'::text), array_agg(null::jsonb)) from generate_series(1, 2000)`)
	}
	grown := measure()
	exec(`analyze`)
	analysed := measure()
	for name := range statements {
		t.Logf("%s: %d, %d, %d blocks", name, empty[name], grown[name], analysed[name])
		if most := max(grown[name], analysed[name]); most > 3*empty[name] {
			t.Errorf("%s touches %d blocks of an empty table, up to %d of a full one", name, empty[name], most)
		}
	}
}
