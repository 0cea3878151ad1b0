package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/worker"
)

// Whatever is changed by hand is found, named and repaired.
func TestVerifyFindsAndRepairs(t *testing.T) {
	t.Parallel()
	const s3 = `c.stream_id = rewind.stream_id('t', 's3')`
	for name, c := range map[string]struct {
		damage string
		want   []string // found, at least
	}{
		"model":          {`update rewind.perspective_cursors c set model = jsonb_set(model, '{count}', '99') where ` + s3, []string{"s3 model"}},
		"no model":       {`update rewind.perspective_cursors c set model = null where ` + s3, []string{"s3 model"}},
		"count":          {`update rewind.perspective_cursors c set events_applied = 3 where ` + s3, []string{"s3 events_applied"}},
		"last event":     {`update rewind.perspective_cursors c set last_event_id = rewind.uuidv7() where ` + s3, []string{"s3 events_applied"}},
		"first time":     {`update rewind.perspective_cursors c set first_event_at = '2001-01-01' where ` + s3, []string{"s3 events_applied"}},
		"last time":      {`update rewind.perspective_cursors c set last_event_at = null where ` + s3, []string{"s3 events_applied"}},
		"snapshot":       {`update rewind.perspective_snapshots c set model = '{"count": 1}' where ` + s3, []string{"s3 snapshot"}},
		"missing cursor": {`delete from rewind.perspective_cursors c where ` + s3, []string{"s3 missing_cursor"}},
		"passed over": {
			`update rewind.perspective_cursors c set applied_version = 0, events_applied = 0, last_event_id = null, model = null where ` + s3,
			[]string{"s3 owed"},
		},
		"cursor of nothing": {
			`insert into rewind.perspective_cursors (generation_id, stream_id, wal_partition, status)
			 select active_generation, rewind.uuidv7(), 0, 2 from rewind.perspectives`,
			[]string{" orphan"},
		},
		"snapshot of nothing": {
			`update rewind.perspective_snapshots c set stream_id = rewind.uuidv7() where ` + s3,
			[]string{" orphan"},
		},
		"ahead of the log": {`update rewind.perspective_cursors c set applied_version = 1000 where ` + s3, []string{"s3 events_applied"}},
		"ahead of what came since": {
			`update rewind.perspective_cursors c set applied_version = 1000 where ` + s3 + `;
			 select from rewind.append_events('t', 's3', '[{"type": "happened", "payload": {"v": 5}}]')`,
			[]string{"s3 events_applied"},
		},
		"parked": {
			`update rewind.perspective_cursors c set model = '{}', status = 4 | 32, error = 'long ago', attempts = 9 where ` + s3,
			[]string{"s3 model"},
		},
		"no position": {`delete from rewind.perspective_partitions where wal_partition = 0`, []string{" position"}},
		"positions beyond the log": {
			`update rewind.perspective_partitions set next_offset = 1000;
			 select from rewind.append_events('t', 's3', '[{"type": "happened", "payload": {"v": 5}}]')`,
			[]string{" position", "s3 owed"},
		},
		"several": {
			`update rewind.perspective_cursors c set model = '{}'; delete from rewind.perspective_cursors c where ` + s3,
			[]string{"s0 model", "s1 model", "s2 model", "s3 missing_cursor", "s4 model"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{partitions: 2, options: map[string]any{"snapshot_every_n_events": 5}})
			for i := range 50 {
				w.append(fmt.Sprint("s", i%5), testEvent{at: 10 * i, v: 1 + i%6})
			}
			w.catchUp()
			if found := w.verify(); len(found) > 0 {
				t.Fatalf("before: %v", found)
			}
			if _, err := w.pool.Exec(t.Context(), c.damage, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			found := w.verify()
			for _, want := range c.want {
				if !slices.Contains(found, want) {
					t.Errorf("found %q, want %q", found, want)
				}
			}
			if repaired := texts(t, w.pool, `
				select coalesce(stream_key, '') || ' ' || problem from rewind.verify_perspective('p', p_options => '{"repair": true}') order by 1`); !slices.Equal(repaired, found) {
				t.Errorf("repairing found %q, verifying %q", repaired, found)
			}
			w.catchUp()
			w.checkSettled()
		})
	}
}

// What is appended while a position is repaired is read.
func TestVerifyRepairsPositionBesideAppends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("a", testEvent{at: 10, v: 1})
	w.catchUp()
	w.exec(`update rewind.perspective_partitions set next_offset = 1000`)
	holder := begin(t, w.pool, pgx.TxOptions{})
	if _, err := holder.Exec(t.Context(), `select from rewind.perspective_partitions for update`); err != nil {
		t.Fatal(err)
	}
	repairing := begin(t, w.pool, pgx.TxOptions{})
	repaired := make(chan error, 1)
	go func() {
		_, err := repairing.Exec(t.Context(), `select from rewind.verify_perspective('p', p_options => '{"repair": true}')`)
		repaired <- err
	}()
	waitUntilBlocked(t, w.pool, repairing.Conn().PgConn().PID())
	w.append("new", testEvent{at: 10, v: 1})
	w.append("a", testEvent{at: 20, v: 2})
	commit(t, holder)
	if err := <-repaired; err != nil {
		t.Fatal(err)
	}
	commit(t, repairing)
	w.catchUp()
	w.checkSettled()
}

// Beside what has yet to be done nothing is found that isn't there: neither while selected streams are rebuilt, nor of a parked one; and what
// is damaged in a parked one is mended.
func TestVerifyBesideRepairs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"max_attempts": 1}})
	w.append("s", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	w.append("parked", testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	w.catchUp()
	w.append("parked", testEvent{at: 5, v: 3, fail: true})
	w.apply()
	settle(t, w, newWorker(t, w, worker.Config{}))
	w.verified("p", 0)
	w.exec(`select from rewind.begin_perspective_rebuild('p', 'streams', array['s', 'parked'])`)
	w.verified("p", 0)
	settle(t, w, newWorker(t, w, worker.Config{}))
	w.verified("p", 0)
	if state := w.rebuildState("p"); state != "failed" {
		t.Errorf("the rebuild of a stream that fails is %s", state)
	}
	for _, damage := range []string{`model = '{"count": 99}'`, `events_applied = 17`} {
		w.exec(`update rewind.perspective_cursors set ` + damage + ` where stream_id = rewind.stream_id('t', 'parked')`)
		if found := w.verify(); len(found) == 0 {
			t.Errorf("%s is not found", damage)
		}
		w.exec(`select from rewind.verify_perspective('p', p_options => '{"repair": true}')`)
		w.verified("p", 0)
		settle(t, w, newWorker(t, w, worker.Config{}))
		w.verified("p", 0)
		if got := fmt.Sprint(w.states("p")[0].Model, w.states("p")[0].Status&4 != 0); got != fmt.Sprint(chain([]int{1, 2}), true) {
			t.Errorf("%s: the parked stream has %s", damage, got)
		}
	}
}

// A log that was changed by hand is found; nothing can repair it.
func TestVerifyFindsChangedLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ damage, want string }{
		"a record is gone":     {`delete from rewind.wal where stream_id = rewind.stream_id('t', 's1') and stream_version = 2`, "s1 log"},
		"a clock runs back":    {`update rewind.wal set hlc = 1 where stream_id = rewind.stream_id('t', 's1') and stream_version = 2`, "s1 log"},
		"a payload is another": {`update rewind.wal set payload = '{"v": 50}' where stream_id = rewind.stream_id('t', 's1') and stream_version = 2`, "s1 model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{})
			for i := range 15 {
				w.append(fmt.Sprint("s", i%3), testEvent{at: 10 * i, v: 1 + i%6})
			}
			w.catchUp()
			w.exec(`alter table rewind.wal disable trigger all`)
			w.exec(c.damage)
			if found := w.verify(); !slices.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// Parts of the streams: ranges, which together are all, and samples.
func TestVerifyParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for i := range 40 {
		w.append(fmt.Sprint("s", i), testEvent{at: 10, v: 1})
	}
	w.catchUp()
	w.exec(`update rewind.perspective_cursors set model = '{}'`)
	streams := queryOne[[]uuid.UUID](t, w.pool, `select array_agg(stream_id order by stream_id) from rewind.streams where stream_key like 's%'`)
	var found []string
	for i := 0; i < len(streams); i += 15 {
		options := fmt.Sprintf(`{"from_stream_id": %q}`, streams[i])
		if i+15 < len(streams) {
			options = fmt.Sprintf(`{"from_stream_id": %q, "to_stream_id": %q}`, streams[i], streams[i+15])
		}
		found = append(found, texts(t, w.pool, `select stream_key from rewind.verify_perspective('p', p_options => $1)`, options)...)
	}
	slices.Sort(found)
	if len(found) != 40 || len(slices.Compact(found)) != 40 {
		t.Errorf("ranges find %d problems, want one in each of 40 streams", len(found))
	}
	w.exec(`update rewind.perspective_partitions set next_offset = 1000`)
	for option, want := range map[string]int{`"from_stream_id": %q`: 1, `"to_stream_id": %q`: 0, `"from_stream_id": %[1]q, "sample": 1`: 0} {
		options := "{" + fmt.Sprintf(option, streams[20]) + "}"
		if n := queryOne[int](t, w.pool, `select count(*) from rewind.verify_perspective('p', p_options => $1) where problem = 'position'`, options); n != want {
			t.Errorf("%s: %d problems with positions, want %d", options, n, want)
		}
	}
	sampled := 0
	for range 20 {
		sampled += queryOne[int](t, w.pool, `select count(*) from rewind.verify_perspective('p', p_options => '{"sample": 0.25}')`)
	}
	if sampled < 100 || sampled > 300 { // 200 expected, 12 the standard deviation
		t.Errorf("20 samples of a quarter of 40 streams find %d problems", sampled)
	}
	for _, options := range []string{`{"sample": 0}`, `{"sample": 1.1}`, `{"smaple": 1}`} {
		wantCode(t, w.pool, "22023", `select rewind.verify_perspective('p', p_options => '`+options+`')`)
	}
	tx, err := w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	wantCode(t, tx, "RW020", `select rewind.verify_perspective('p', p_options => '{"repair": true}')`)
}
