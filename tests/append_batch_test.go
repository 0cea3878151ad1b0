package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
)

const appendBatch = `select * from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`

func batch(t testing.TB, db rewind.DBTX, streams []string, ids []*uuid.UUID, types []string, payloads []*string) []place {
	t.Helper()
	rows, err := db.Query(ctxOf(t), appendBatch, streams, ids, types, payloads)
	if err != nil {
		t.Fatal(err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func TestAppendBatch(t *testing.T) {
	t.Parallel()

	t.Run("returns places in array order", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 5)
		const n = 200
		streams, ids, types, payloads := make([]string, n), make([]*uuid.UUID, n), make([]string, n), make([]*string, n)
		for i := range n {
			streams[i], types[i] = fmt.Sprint("s", i*7%23), fmt.Sprint("type", i)
			if i%3 == 0 {
				id := at(i)
				ids[i] = &id
			}
			if i%2 == 0 {
				payload := fmt.Sprint(i)
				payloads[i] = &payload
			}
		}
		places := batch(t, pool, streams, ids, types, payloads)
		versions := map[string]int64{}
		for i, p := range places {
			versions[streams[i]]++
			if p.StreamVersion != versions[streams[i]] || !p.WasNew || ids[i] != nil && p.EventID != *ids[i] {
				t.Errorf("event %d: %+v", i, p)
			}
			got := queryOne[string](t, pool, `select format('%s %s %s', stream_key, event_type, payload)
				from rewind.wal join rewind.streams using (stream_id, wal_partition)
				where wal_partition = $1 and wal_offset = $2 and event_id = $3 and hlc = $4`, p.WalPartition, p.WalOffset, p.EventID, p.HLC)
			want := streams[i] + " " + types[i] + " "
			if payloads[i] != nil {
				want += *payloads[i]
			}
			if got != want {
				t.Errorf("event %d stands at %+v, where %q is", i, p, got)
			}
		}
		wantDense(t, pool)
		apart := queryOne[int](t, pool, `
			select count(*) from (select wal_partition <> lag(wal_partition) over (order by ctid) as changes from rewind.wal where kind = 6) w where changes`)
		if apart != 4 {
			t.Errorf("the partition of neighbours differs %d times, want 4: 5 partitions, each in one piece", apart)
		}

		// Again, with every id: nothing is new. With some more: only these.
		was := make([]place, n)
		for i, p := range places {
			ids[i], was[i] = &places[i].EventID, p
			was[i].WasNew = false
		}
		if diff := cmp.Diff(was, batch(t, pool, streams, ids, types, payloads)); diff != "" {
			t.Error("again:", diff)
		}
		for i := range n {
			if i%5 == 0 {
				ids[i] = nil
			}
		}
		for i, p := range batch(t, pool, streams, ids, types, payloads) {
			if p.WasNew != (i%5 == 0) || !p.WasNew && p != was[i] {
				t.Errorf("with some new, event %d: %+v", i, p)
			}
		}
		wantDense(t, pool)
	})

	t.Run("knows an id twice in one call", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 2)
		id, one, two := at(1), "1", "2"
		places := batch(t, pool, []string{"a", "b", "a"}, []*uuid.UUID{&id, &id, &id}, []string{"x", "x", "x"}, []*string{&one, &two, &one})
		if !places[0].WasNew || !places[1].WasNew || places[2].WasNew || places[2].WalOffset != places[0].WalOffset {
			t.Errorf("%+v", places)
		}
		err := wantCode(t, pool, "RW002", appendBatch, []string{"a", "c", "c"}, []uuid.UUID{id, id, id}, []string{"x", "x", "y"}, []string{"1", "1", "1"})
		if diff := cmp.Diff([]string{"2"}, complaints(t, err)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("refuses what is malformed and stores nothing", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 2)
		long := strings.Repeat("x", 501)
		none, text := []*uuid.UUID{nil, nil}, func(s string) *string { return &s }
		for _, c := range []struct {
			code    string
			streams []*string
			ids     []*uuid.UUID
			types   []*string
			want    []string
		}{
			{"RW017", []*string{text("a"), nil}, none, []*string{nil, text("b")}, []string{"0 type", "1 stream"}},
			{"RW017", []*string{text("a"), text("b")}, none, []*string{text("a"), text(long)}, []string{"1 type"}},
			{"22023", []*string{text("a"), text(long)}, none, []*string{text("a"), nil}, nil},
			{"22023", []*string{text("a")}, none, []*string{text("a"), text("b")}, nil},
			{"22023", []*string{text("a"), text("b")}, none[:1], []*string{text("a"), text("b")}, nil},
			{"22023", []*string{text("a"), text("b")}, none, []*string{text("a")}, nil},
			{"22023", nil, none, []*string{text("a"), text("b")}, nil},
		} {
			err := wantCode(t, pool, c.code, appendBatch, c.streams, c.ids, c.types, []*string{nil, nil})
			if c.want == nil {
				continue
			}
			if diff := cmp.Diff(c.want, complaints(t, err)); diff != "" {
				t.Error(diff)
			}
		}
		err := wantCode(t, pool, "RW003", appendBatch, []string{"a", "b"}, []uuid.UUID{at(1), uuid.New()}, []string{"a", "a"}, []*string{nil, nil})
		if diff := cmp.Diff([]string{"1 event_id"}, complaints(t, err)); diff != "" {
			t.Error(diff)
		}
		wantCode(t, pool, "RW005", `select rewind.append_batch('nowhere', null, null, null, null)`)
		good := []string{`'{a,b}'`, `'{null,null}'`, `'{x,y}'`, `'{1,2}'`, `'{1,2}'`}
		for i, oddities := range [][]string{
			{`'[0:1]={a,b}'`, `'{{a,b}}'`}, {`'[0:1]={null,null}'`, `'{{null,null}}'`}, {`'[0:1]={x,y}'`, `'{{x,y}}'`},
			{`'[0:1]={1,2}'`, `'{{1,2}}'`}, {`'[2:3]={1,2}'`, `'{{1,2}}'`},
		} {
			for _, odd := range oddities {
				arrays := slices.Clone(good)
				arrays[i] = odd
				wantCode(t, pool, "22023", `select rewind.append_batch('t', `+strings.Join(arrays, ", ")+`)`)
			}
		}
		if n := queryOne[int64](t, pool, `select count(*) from rewind.wal`) + queryOne[int64](t, pool, `select count(*) from rewind.streams`); n != 0 {
			t.Errorf("%d rows were stored", n)
		}
	})

	t.Run("takes metadata, tenants, JSON null and nothing", func(t *testing.T) {
		t.Parallel()
		pool := newLog(t, 2)
		mustExec(t, pool, `select rewind.append_batch('t', '{a,a}', '{null,null}', '{x,y}', array['null', '1']::jsonb[], array['{"n": 1}', 'null']::jsonb[],
			'{"tenant_id": "z"}')`)
		mustExec(t, pool, `select rewind.append_batch('t', '{}', '{}', '{}', '{}')`)
		got := texts(t, pool, `select format('%s|%s|%s|%s', tenant_id, event_type, payload, metadata) from rewind.read_stream('t', 'a', p_options => '{"tenant_id": "z"}')`)
		if diff := cmp.Diff([]string{`z|x||{"n": 1}`, `z|y|1|`}, got); diff != "" {
			t.Error(diff)
		}
	})
}
