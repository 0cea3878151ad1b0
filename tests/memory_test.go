package tests

import (
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// What a worker holds of a stream that it replays is a page, however long the stream is, and however well its payloads are compressed
// where they are stored: those of this one are more than the worker may take.
func TestMemoryOfReplays(t *testing.T) {
	t.Parallel()
	const events, payload, limit = 2_500, 12_000, 32 << 20
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.register_perspective('g', 't', p_options => '{"inline_rewind_events": 0, "debounce_window": "0s", "rewind_share": 1}')`)
	w.exec(`
		select from (
		  select array_agg('s'::text) as streams, array_agg(('018c' || lpad(to_hex(i), 8, '0') || '70008000000000000000')::uuid order by i) as ids,
		    array_agg('happened'::text) as types, array_agg(jsonb_build_object('v', i % 1000, 'padding', repeat('x', $2)) order by i) as payloads
		  from generate_series(1, $1) i
		) e, rewind.append_batch('t', e.streams, e.ids, e.types, e.payloads)`, events, payload)
	p := startGoWorker(t, w)
	applied := func(n int64) func() bool {
		return func() bool { return w.applied("p") == n && w.applied("g") == n }
	}
	eventually(t, applied(events))
	w.append("s", testEvent{at: 1, v: 1}) // before all others and any snapshot
	eventually(t, applied(events+1))
	p.signal(t, syscall.SIGTERM)
	<-p.exited
	if n := queryOne[int64](t, w.pool, `select sum(events_replayed)::bigint from rewind.perspective_rewinds`); n != 2*(events+1) {
		t.Errorf("%d events replayed, want %d", n, 2*(events+1))
	}
	match := regexp.MustCompile(`memory: (\d+) bytes`).FindSubmatch(p.output.buf.Bytes())
	if match == nil {
		t.Fatal("the worker does not say how much memory it took")
	}
	memory, err := strconv.Atoi(string(match[1]))
	if err != nil || memory > limit {
		t.Errorf("%d bytes of memory, want at most %d: %v", memory, limit, err)
	}
	t.Logf("%d MB of memory for %d MB of payloads", memory>>20, events*payload>>20)
}
