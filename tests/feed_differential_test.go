package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

// randomLog makes a tree with a log such as appends, moves, trims and foreign writers leave behind: partitions busy very unevenly, in
// bursts, clocks equal among partitions, kinds, origins and sizes of all sorts, and NULL wherever it may be.
type randomLog struct {
	*rand.Rand
	t    *testing.T
	pool *pgxpool.Pool
	tree string
	own  uuid.UUID
}

func (l randomLog) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.pool.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatal(err)
	}
}

func (l randomLog) write(n int) {
	l.t.Helper()
	treeID := queryOne[int](l.t, l.pool, `select tree_id from rewind.trees where tree_name = $1`, l.tree)
	first := queryOne[int](l.t, l.pool, `select first_partition from rewind.trees where tree_name = $1`, l.tree)
	partitions := queryOne[int](l.t, l.pool, `select partitions from rewind.trees where tree_name = $1`, l.tree)
	clock := queryOne[int64](l.t, l.pool, `
		select greatest(1, max(p.base_hlc), max(w.hlc)) from rewind.tree_partitions p left join rewind.wal w using (tree_id) where tree_id = $1`, treeID)
	streams := [][]any{}
	for i := range 8 {
		streams = append(streams, []any{uuid.New(), treeID, first, []string{"", "a tenant"}[i%2], fmt.Sprint([]string{"a", "b"}[i/4], "-", uuid.New())})
	}
	l.copy("streams", []string{"stream_id", "tree_id", "wal_partition", "tenant_id", "stream_key"}, streams)

	offsets, clocks := make([]int64, partitions), make([]int64, partitions)
	for i := range offsets {
		offsets[i] = queryOne[int64](l.t, l.pool, `
			select coalesce(max(wal_offset) + 1, 0) from rewind.wal where tree_id = $1 and wal_partition = $2`, treeID, first+i)
		clocks[i] = clock
	}
	kinds := []int16{6, 6, 6, 6, 6, 6, 6, 0, 1, 2, 3, 4, 5}
	jsonOf := func() any {
		switch l.IntN(30) {
		case 0, 1, 2:
			return nil
		case 3:
			return json.RawMessage(`null`)
		case 4, 5:
			text, err := json.Marshal(noise(l.Int(), 1+l.IntN(9000)))
			if err != nil {
				l.t.Fatal(err)
			}
			return json.RawMessage(text)
		default:
			return json.RawMessage(fmt.Sprintf(`{"n": %d, "s": "%s"}`, l.IntN(99), strings.Repeat("é\\n", l.IntN(9))))
		}
	}
	sticky, busy := l.Float64(), l.IntN(partitions)
	var p int
	var rows [][]any
	for i := range n {
		if l.Float64() > sticky {
			if p = l.IntN(partitions); l.IntN(2) == 0 {
				p = busy
			}
		}
		clock += []int64{0, 0, 1, 70_000}[l.IntN(4)]
		clock = max(clock, clocks[p]+1)
		clocks[p] = clock
		kind := kinds[l.IntN(len(kinds))]
		var mode, eventType, delta, endKey, originHLC any
		origin := l.own
		if kind == 6 {
			eventType = []any{"common", "common", "common", "odd", nil, "", "it's \"quoted\""}[l.IntN(7)]
			if l.IntN(100) == 0 {
				eventType = "rare"
			}
		} else {
			mode = int16(l.IntN(15))
			delta = [][]byte{nil, {}, {0, 1, 255}, []byte(noise(l.Int(), 3000))}[l.IntN(4)]
			endKey = []any{nil, "", "z"}[l.IntN(3)]
		}
		if l.IntN(5) == 0 {
			origin, originHLC = uuid.New(), int64(l.IntN(3))
		}
		rows = append(rows, []any{
			treeID, first + p, offsets[p], clock, streams[l.IntN(len(streams))][0], int64(i + 1), uuid.New(), kind, mode, eventType, jsonOf(), jsonOf(),
			delta, endKey, origin, originHLC,
		})
		offsets[p]++
	}
	l.copy("wal", []string{
		"tree_id", "wal_partition", "wal_offset", "hlc", "stream_id", "stream_version", "event_id", "kind", "mode", "event_type", "payload", "metadata",
		"delta", "end_key", "origin_cluster", "origin_hlc",
	}, rows)
}

func (l randomLog) copy(table string, columns []string, rows [][]any) {
	l.t.Helper()
	if _, err := l.pool.CopyFrom(l.t.Context(), pgx.Identifier{"rewind", table}, columns, pgx.CopyFromRows(rows)); err != nil {
		l.t.Fatal(err)
	}
}

// sizedRecord is a record and what it takes on a page.
type sizedRecord struct {
	rewind.Record
	size int64
}

// read is the log, read without any merge.
func (l randomLog) read() (all []sizedRecord) {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), `
		select t.tree_name, s.tenant_id, s.stream_key, w.stream_id, w.wal_partition, w.wal_offset, w.hlc, w.stream_version, w.event_id, w.kind, w.mode,
			coalesce(w.event_type, ''), w.payload, w.metadata, w.delta, w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at,
			coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(metadata), 0) + coalesce(pg_column_size(delta), 0)
		from rewind.wal w
		join rewind.trees t using (tree_id)
		join rewind.streams s using (stream_id)
		join rewind.tree_partitions p on p.tree_id = w.tree_id and p.wal_partition = w.wal_partition
		where t.tree_name = $1 and w.wal_offset >= p.floor_offset
		order by w.hlc, w.wal_partition`, l.tree)
	if err != nil {
		l.t.Fatal(err)
	}
	for rows.Next() {
		var r sizedRecord
		if err := rows.Scan(&r.Tree, &r.TenantID, &r.StreamKey, &r.StreamID, &r.Partition, &r.Offset, &r.HLC, &r.StreamVersion, &r.EventID, &r.Kind,
			&r.Mode, &r.Type, &r.Payload, &r.Metadata, &r.Delta, &r.EndKey, &r.OriginCluster, &r.OriginHLC, &r.AppendedAt, &r.size); err != nil {
			l.t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return all
}

// randomFilter is a filter in Go, in SQL, and as a condition.
func (l randomLog) filter() (opts []rewind.Option, filter map[string]any, withLocal bool, matches func(rewind.Record) bool) {
	filter, withLocal = map[string]any{}, true
	var types []string
	var kinds []rewind.Kind
	prefix, origin := "", rewind.OriginLocal
	if l.IntN(3) == 0 {
		types = [][]string{{"rare"}, {"odd", ""}, {"it's \"quoted\""}, {"none"}, {}}[l.IntN(5)]
		opts, filter["event_types"] = append(opts, rewind.EventTypes(types...)), types
	}
	if l.IntN(4) == 0 {
		kinds = [][]rewind.Kind{{6}, {0, 5}, {1, 2, 3, 4}, {5}, {}}[l.IntN(5)]
		opts, filter["kinds"] = append(opts, rewind.Kinds(kinds...)), kinds
	}
	if l.IntN(4) == 0 {
		prefix = []string{"a-", "nobody"}[l.IntN(2)]
		opts, filter["key_prefix"] = append(opts, rewind.KeyPrefix(prefix)), prefix
	}
	if l.IntN(2) == 0 {
		origin = []rewind.Origin{rewind.OriginForeign, rewind.OriginAll}[l.IntN(2)]
		opts, filter["origin"] = append(opts, rewind.FromOrigin(origin)), origin
	}
	if l.IntN(8) == 0 {
		opts, withLocal = append(opts, rewind.ExcludeLocalOrigin()), false
	}
	return opts, filter, withLocal, func(r rewind.Record) bool {
		isLocal := r.OriginCluster == l.own
		return r.Kind != rewind.KindTombstone && (types == nil || r.Type != "" && slices.Contains(types, r.Type) || r.Type == "" && l.isEmptyType(r, types)) &&
			(kinds == nil || slices.Contains(kinds, r.Kind)) && strings.HasPrefix(r.StreamKey, prefix) &&
			(isLocal && withLocal && origin != rewind.OriginForeign || !isLocal && origin != rewind.OriginLocal)
	}
}

// isEmptyType tells NULL from the empty type, which a Record doesn't.
func (l randomLog) isEmptyType(r rewind.Record, types []string) bool {
	return slices.Contains(types, "") && queryOne[bool](l.t, l.pool, `select event_type is not null from rewind.wal where stream_id = $1 and event_id = $2`,
		r.StreamID, r.EventID)
}

// page is a page of read_feed.
func (l randomLog) page(cursor, until any, limit int, withLocal bool, filter, options any) (page []spot, next json.RawMessage) {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), `
		select hlc, wal_partition, wal_offset, next_cursor from rewind.read_feed($1, $2, $3, $4, $5, $6, $7)`,
		l.tree, cursor, until, limit, withLocal, filter, options)
	if err != nil {
		l.t.Fatal(err)
	}
	for rows.Next() {
		var s spot
		if next != nil {
			l.t.Error("a row before the last one of the page has a cursor")
		}
		if err := rows.Scan(&s.HLC, &s.Partition, &s.Offset, &next); err != nil {
			l.t.Fatal(err)
		}
		page = append(page, s)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	return page, next
}

func spotOf(r rewind.Record) spot { return spot{r.HLC, r.Partition, r.Offset} }

// A random log, read in Go, in SQL and plainly, from random places, with random filters, pages and ends.
func TestFeedDifferential(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	own := queryOne[uuid.UUID](t, pool, `select cluster_id from rewind.settings`)
	for trial := range feedTrials {
		t.Run(fmt.Sprint(trial), func(t *testing.T) {
			l := randomLog{rand.New(rand.NewPCG(uint64(trial), feedSeed)), t, pool, fmt.Sprint("t", trial), own}
			l.exec(`select from rewind.create_tree($1, $2)`, l.tree, []int{1, 2, 3, 7, 64}[l.IntN(5)])
			l.write(l.IntN(400))
			if l.IntN(3) == 0 {
				l.exec(`select from rewind.repartition_tree($1, $2)`, l.tree, 10+l.IntN(9))
				l.write(l.IntN(200))
			}
			oldest := rewind.Initial
			if all := l.read(); len(all) > 0 && l.IntN(3) == 0 {
				n := 1 + l.IntN(len(all))
				_, at := l.page(nil, nil, n, true, `{"origin": "all"}`, `{}`)
				if at != nil {
					l.exec(`select from rewind.trim_tree($1, $2)`, l.tree, at)
					var err error
					if oldest, err = rewind.OldestCursor(t.Context(), pool, l.tree); err != nil {
						t.Fatal(err)
					}
				}
			}
			all := l.read()
			for range 6 {
				l.compare(all, oldest)
				if t.Failed() {
					return
				}
			}
		})
	}
}

const feedTrials, feedSeed = 12, 1

func (l randomLog) compare(all []sizedRecord, oldest rewind.Cursor) {
	l.t.Helper()
	opts, filter, withLocal, matches := l.filter()
	want := slices.DeleteFunc(slices.Clone(all), func(r sizedRecord) bool { return !matches(r.Record) })
	about := fmt.Sprintf("%v, with local %v", filter, withLocal)

	var got []rewind.Record
	for r, err := range rewind.Subscribe(l.t.Context(), l.pool, l.tree, oldest, opts...) {
		if err != nil {
			l.t.Fatal(err)
		}
		got = append(got, r)
	}
	var records []rewind.Record
	for _, r := range want {
		records = append(records, r.Record)
	}
	if diff := cmp.Diff(records, got, cmpopts.IgnoreUnexported(rewind.Record{})); diff != "" {
		l.t.Errorf("%s: in Go (-want +got):\n%s", about, diff)
		return
	}

	// The ends of readers: cursors of any record.
	cursors := []rewind.Cursor{oldest}
	for _, r := range got {
		cursors = append(cursors, r.Cursor())
	}
	n := l.IntN(len(cursors))
	var rest []spot
	for r, err := range rewind.Subscribe(l.t.Context(), l.pool, l.tree, cursors[n], opts...) {
		if err != nil {
			l.t.Fatal(err)
		}
		rest = append(rest, spotOf(r))
	}
	spots := func(records []sizedRecord) (s []spot) {
		for _, r := range records {
			s = append(s, spotOf(r.Record))
		}
		return s
	}
	if diff := cmp.Diff(spots(want[n:]), rest); diff != "" {
		l.t.Errorf("%s: after record %d in Go (-want +got):\n%s", about, n, diff)
	}

	end := n + l.IntN(len(cursors)-n)
	var until any = cursors[end]
	if l.IntN(2) == 0 || end == 0 {
		end, until = len(want), nil
	}
	limit := 1 + l.IntN([]int{1, 5, 100, 1000}[l.IntN(4)])
	maxBytes := int64(1 + l.IntN([]int{1, 100, 20_000, 4 << 20}[l.IntN(4)]))
	var cursor any = cursors[n]
	for at := n; ; {
		most := at
		for size := int64(0); most < end && most < at+limit; most++ {
			if size += want[most].size; size > maxBytes && most > at {
				break
			}
		}
		page, next := l.page(cursor, until, limit, withLocal, filter, map[string]any{"max_bytes": maxBytes})
		if diff := cmp.Diff(spots(want[at:most]), page); diff != "" {
			l.t.Errorf("%s: page after %d of at most %d records, %d bytes, until %d of %d (-want +got):\n%s", about, at, limit, maxBytes, end, len(want), diff)
			return
		}
		if (next != nil) != (len(page) > 0) {
			l.t.Errorf("%s: page of %d records has cursor %s", about, len(page), next)
		}
		if len(page) == 0 {
			return
		}
		at, cursor = most, next
	}
}
