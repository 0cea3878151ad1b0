package tests

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind/worker"
)

// A perspective created on a full tree is built in chronology: nothing of a log that is all in disorder is flagged or repaired.
func TestBuildOnFullTree(t *testing.T) {
	t.Parallel()
	for _, batchSize := range []int{1, 7, 1000} {
		t.Run(fmt.Sprintf("batches_of_%d", batchSize), func(t *testing.T) {
			t.Parallel()
			options := map[string]any{ // nothing is tried again meanwhile
				"snapshot_every_n_events": 5, "rewind_snapshot_interval_events": 2, "inline_rewind_events": 0,
				"retry_backoff": "1h", "retry_backoff_max": "1h",
			}
			w := newWorld(t, worldOptions{partitions: 2, options: options})
			w.appendRandomly(rand.New(rand.NewPCG(1, uint64(batchSize))), 400)
			w.append("bad", testEvent{at: 10, v: 1}, testEvent{at: 30, v: 2, fail: true}, testEvent{at: 20, v: 3})
			w.append("long", inOrder(70)...)
			w.exec(`select from rewind.create_perspective('full', 't', 'app.chain(jsonb, rewind.event)', p_options => $1)`, options)
			k := newWorker(t, w, worker.Config{BatchSize: batchSize, Perspectives: []string{"full", "g"}})
			register(t, k, chainPerspective(options))
			var failed *worker.FailedStreamsError
			if err := k.RunUntilIdle(t.Context()); !errors.As(err, &failed) || failed.Failed != 2 {
				t.Fatalf("built with %v; want one failed stream in either perspective", err)
			}
			if n := queryOne[int](t, w.pool, `select count(*) from rewind.perspective_rewinds`); n != 0 {
				t.Errorf("%d rewinds; want none", n)
			}
			w.checkSound()
			withoutErrors := func(perspective string) []state {
				states := w.states(perspective)
				for i := range states { // which SQL and Go put differently
					states[i].Error = nil
				}
				return states
			}
			if diff := cmp.Diff(withoutErrors("full"), withoutErrors("g")); diff != "" {
				t.Errorf("cursors (-SQL +Go):\n%s", diff)
			}
			built := queryOne[int64](t, w.pool, `
				select sum(t.events_built) from rewind.perspective_partitions t join rewind.perspectives p on p.active_generation = t.generation_id
				where p.perspective_name = 'full'`)
			events := queryOne[int64](t, w.pool, `
				select sum(c.events_applied) from rewind.perspective_cursors c join rewind.perspectives p on p.active_generation = c.generation_id
				where p.perspective_name = 'full' and c.error is null`)
			if built != events {
				t.Errorf("%d events were built, the cursors without errors have %d", built, events)
			}
			// The ladder of a stream of 70 with a spacing of 5: distances 0, 5, 15, 35 from its head, and no more.
			if got, want := queryOne[[]int64](t, w.pool, `
				select array_agg(n.events_applied order by n.events_applied)
				from rewind.perspective_snapshots n
				join rewind.perspectives p on p.active_generation = n.generation_id and p.perspective_name = 'full'
				join rewind.streams s using (stream_id) where s.stream_key = 'long'`), []int64{35, 55, 65, 70}; !cmp.Equal(got, want) {
				t.Errorf("snapshots of the long stream after %v events, want %v", got, want)
			}
		})
	}
}

// What arrives while a perspective is built is not lost, nor is a stream that another session has built meanwhile done again.
func TestBuildBesideAppends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 1})
	for i := range 50 {
		w.append(fmt.Sprint("s", i), testEvent{at: 100 + i, v: 1}, testEvent{at: 50 + i, v: 2})
	}
	w.exec(`select from rewind.create_perspective('full', 't', 'app.chain(jsonb, rewind.event)')`)
	for i := 0; ; i++ {
		next := queryOne[int64](t, w.pool, `select next_offset from rewind.apply_perspective_batch('full', 0, 5)`)
		w.checkSound()
		if next >= queryOne[int64](t, w.pool, `select next_offset from rewind.partitions where tree_name = 't'`) {
			break
		}
		if i < 10 { // late in a stream that is built, late in one that isn't, and in a new one
			w.append(fmt.Sprint("s", i), testEvent{at: 10 + i, v: 3})
			w.append(fmt.Sprint("s", 49-i), testEvent{at: 10 + i, v: 4})
			w.append(fmt.Sprint("new", i), testEvent{at: 10 + i, v: 5})
		}
	}
	w.catchUp()
	w.exec(`call rewind.catch_up('full')`)
	if diff := cmp.Diff(w.states("p"), w.states("full")); diff != "" {
		t.Errorf("cursors (-live +built):\n%s", diff)
	}
	w.checkSettled()
}

// A stream that is too large for a step is left to the rewind path, which replays it in pages.
func TestBuildLargeStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{partitions: 1})
	w.append("small", inOrder(10)...)
	w.exec(`
		select count(*)
		from (select jsonb_agg(jsonb_build_object('type', 'a', 'payload', jsonb_build_object('v', n))) as events from generate_series(1, 50001) n) e
		cross join lateral rewind.append_events('t', 'large', e.events)`)
	w.exec(`select from rewind.create_perspective('full', 't', 'app.chain(jsonb, rewind.event)')`)
	w.exec(`select from rewind.apply_perspective_batch('full', 0, 5000)`)
	if got := queryOne[string](t, w.pool, `
		select string_agg(concat_ws(' ', s.stream_key, c.status, c.applied_version), ', ' order by s.stream_key)
		from rewind.perspective_cursors c
		join rewind.streams s using (stream_id)
		join rewind.perspectives p on p.active_generation = c.generation_id
		where p.perspective_name = 'full'`); got != "large 8 0, small 2 10" {
		t.Errorf("after the first step: %s", got)
	}
	w.exec(`call rewind.catch_up('full')`)
	w.exec(`call rewind.catch_up('p')`)
	w.checkSettled()
}

// A perspective whose event types are rare in the log is built in few steps, and with an index on event types reads nothing but what it folds.
func TestBuildOfRareTypes(t *testing.T) {
	t.Parallel()
	for _, analysed := range []bool{false, true} {
		w := newWorld(t, worldOptions{partitions: 1})
		const events, every = 100_000, 5000
		w.exec(`
			select count(*)
			from (
			  select array_agg('s' || n % 997 order by n) as streams, array_agg(null::uuid) as ids,
			    array_agg(case when n % $2::int = 0 then 'rare' else 'happened' end order by n) as types,
			    array_agg(jsonb_build_object('v', n) order by n) as payloads
			  from generate_series(1, $1::int) n
			) e
			cross join lateral rewind.append_batch('t', e.streams, e.ids, e.types, e.payloads)`, events, every)
		for _, indexed := range []bool{false, true} {
			const matches = events / every
			most := int64(events + 2*events) // once to find out how many there are, once to find them, and streams
			name := "scanned"
			if indexed {
				name, most = "indexed", 300*matches // each of the streams has a hundred events
				w.exec(`create index on rewind.wal (tree_id, wal_partition, event_type, wal_offset)`)
			}
			if analysed {
				w.exec(`analyze`)
			}
			w.exec(`select from rewind.create_perspective($1, 't', 'app.chain(jsonb, rewind.event)', array['rare', 'unheard-of', 'rare'])`, name)
			tx, err := w.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			readSoFar := func() int64 { // may have in it what the session read before
				return queryOne[int64](t, tx, `
					select idx_tup_fetch + seq_tup_read from pg_stat_xact_user_tables where schemaname = 'rewind' and relname = 'wal'`)
			}
			before, steps := readSoFar(), 0
			for queryOne[int64](t, tx, `select coalesce(sum(records_read), 0)::bigint from rewind.apply_perspective_batch($1, 0, 1000)`, name) > 0 {
				steps++
			}
			read := readSoFar() - before
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, analysed %v: %d records read in %d steps", name, analysed, read, steps)
			if read > most || steps > 2 {
				t.Errorf("%s, analysed %v: %d records are read in %d steps for %d that are folded", name, analysed, read, steps, matches)
			}
			if folded := queryOne[int64](t, w.pool, `select sum(events_applied)::bigint from rewind.perspective_cursors c
				join rewind.perspectives p on p.active_generation = c.generation_id and p.perspective_name = $1`, name); folded != matches {
				t.Errorf("%s: %d events folded, want %d", name, folded, matches)
			}
			if n := queryOne[int](t, w.pool, `select count(*) from rewind.verify_perspective($1)`, name); n != 0 {
				t.Errorf("%s: %d problems", name, n)
			}
		}
	}
}
