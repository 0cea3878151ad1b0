package tests

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// runUntil starts workers, one after another as they end, until a condition holds; it returns how many of them the fold ended.
func (w *world) runUntil(t *testing.T, most int, condition func() bool) (deaths int) {
	t.Helper()
	for {
		p := startGoWorker(t, w)
		ended := false
		eventually(t, func() bool {
			select {
			case <-p.exited:
				ended = true
			default:
			}
			return ended || condition()
		})
		if !ended {
			p.signal(t, syscall.SIGTERM)
			<-p.exited
			return deaths
		}
		if code := p.ProcessState.ExitCode(); code != 3 {
			t.Fatalf("a worker ended with exit code %d", code)
		}
		if deaths++; deaths > most {
			t.Fatalf("%d workers ended, and nobody learnt of it", deaths)
		}
	}
}

// summary says how the streams of perspective g stand.
func (w *world) summary() string {
	w.t.Helper()
	return queryOne[string](w.t, w.pool, `
		select coalesce(string_agg(format('%s: %s, %s of %s', what, status, streams, least), '; ' order by what), '')
		from (
		  select case when s.stream_key like 'bad%' then s.stream_key else 'others' end as what,
		    case when c.status & 4 = 0 then c.status::text else case when c.retry_at is null then 'parked' else 'failed' end end as status,
		    count(*) as streams, min(c.applied_version) as least
		  from rewind.perspective_cursors c
		  join rewind.streams s using (stream_id)
		  where c.generation_id = (select active_generation from rewind.perspectives where perspective_name = 'g')
		  group by 1, 2
		) x`)
}

// A fold in Go that ends its worker's process is found by the workers that come after it, and its stream alone is parked.
func TestFoldThatEndsItsProcess(t *testing.T) {
	t.Parallel()
	const streams = 1000
	for name, test := range map[string]struct {
		from int // events of each stream that are applied before the deadly one is appended
		most int // workers may end
	}{
		"among the first events": {0, 5},
		"later":                  {1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{partitions: 2})
			w.exec(`select from rewind.drop_perspective('p')`)
			w.exec(`select from rewind.register_perspective('g', 't')`)
			grow := func(n int) {
				t.Helper()
				keys, ids, types, payloads := make([]string, streams), make([]uuid.UUID, streams), make([]string, streams), make([]string, streams)
				for i := range streams {
					keys[i], ids[i], types[i], payloads[i] = fmt.Sprint("s", i), at(n), "happened", `{"v": 1}`
				}
				w.exec(`select from rewind.append_batch('t', $1, $2, $3, $4::text[]::jsonb[])`, keys, ids, types, payloads)
			}
			for n := range test.from {
				grow(n)
				w.runUntil(t, 0, func() bool { return w.summary() == fmt.Sprintf("others: 2, %d of %d", streams, n+1) })
			}
			grow(10)
			w.append("bad", testEvent{at: 1, v: 1}, testEvent{at: 2, v: exitingValue}, testEvent{at: 3, v: 1})
			grow(20)
			want := fmt.Sprintf("bad: parked, 1 of 1; others: 2, %d of %d", streams, test.from+2)
			deaths := w.runUntil(t, test.most, func() bool { return w.summary() == want })
			t.Logf("%d workers ended", deaths)
			left := queryOne[int64](t, w.pool, `
				select count(*) from rewind.fold_attempts a join rewind.perspective_partitions p using (generation_id, wal_partition)
				where a.end_offset > p.next_offset`)
			if left > 0 {
				t.Errorf("%d batches still count as suspect", left)
			}
		})
	}
}

// So is one that ends its worker in a rewind; here every attempt counts.
func TestRewindThatEndsItsProcess(t *testing.T) {
	t.Parallel()
	const attempts = 3
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.drop_perspective('p')`)
	w.exec(`select from rewind.register_perspective('g', 't', p_options => $1)`, map[string]any{
		"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1, "max_attempts": attempts, "retry_backoff": "1ms",
		"stream_lock_timeout": "1s", "stream_lock_keepalive_interval": "200ms"})
	for _, stream := range []string{"bad", "s1", "s2"} {
		w.append(stream, testEvent{at: 10, v: 1}, testEvent{at: 20, v: 2})
	}
	w.runUntil(t, 0, func() bool { return w.summary() == "bad: 2, 1 of 2; others: 2, 2 of 2" })
	w.append("bad", testEvent{at: 15, v: exitingValue})
	w.append("s1", testEvent{at: 15, v: 3})
	w.append("s2", testEvent{at: 15, v: 3})
	deaths := w.runUntil(t, attempts, func() bool { return w.summary() == "bad: parked, 1 of 2; others: 2, 2 of 3" })
	// A lock that expired though its worker lives, since all is slow, counts as an attempt too.
	if deaths < attempts-1 {
		t.Errorf("%d workers ended, want one for each of %d attempts", deaths, attempts)
	}
}
