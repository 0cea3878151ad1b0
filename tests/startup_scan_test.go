package tests

import (
	"log/slog"
	"testing"

	"github.com/rewindpg/rewind/worker"
)

// flaggedWorld has a late event in each of n streams, for which it would take hours to be repaired by itself.
func flaggedWorld(t *testing.T, n int, mode string) *world {
	t.Helper()
	w := newWorld(t, worldOptions{options: map[string]any{"debounce_window": "1h", "max_debounce_window": "2h"}})
	w.exec(`select from rewind.set_options($1)`, map[string]any{"startup_rewind_mode": mode, "log_level": "info"})
	for i := range n {
		stream := string(rune('a' + i))
		w.append(stream, inOrder(10)...)
		w.apply()
		w.append(stream, testEvent{at: 5, v: 1})
	}
	w.apply()
	return w
}

func TestStartupScan(t *testing.T) {
	t.Parallel()
	t.Run("nothing_flagged", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 0, "blocking")
		var log entries
		runUntilIdle(t, w, worker.Config{Logger: log.logger()})
		if n := len(log.withID(57)); n != 1 || len(log.withID(54)) > 0 {
			t.Errorf("entry 57 %d times, want once and no 54", n)
		}
	})
	t.Run("blocking", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 3, "blocking")
		// Nobody knows this one, nor is the parked one repaired: they are left.
		w.exec(`update rewind.perspective_cursors set status = status | 4, retry_at = null where stream_id = rewind.stream_id('t', 'c')`)
		var log entries
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		stop := start(t, k)
		eventually(t, k.Ready)
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if k.Ready() {
			t.Error("a worker that has stopped is ready")
		}
		for _, stream := range []string{"a", "b"} {
			if c := w.cursor(stream); c.Status != 2 {
				t.Errorf("cursor of %s: %+v", stream, c)
			}
		}
		if c := w.cursor("c"); c.Status != 36 {
			t.Errorf("cursor of the parked stream: %+v", c)
		}
		started, completed := log.withID(54), log.withID(55)
		if len(started) != 1 || len(completed) != 1 {
			t.Fatalf("entries 54: %v, 55: %v, want one of each", started, completed)
		}
		for _, e := range append(started, completed...) {
			if e.level != slog.LevelInfo || e.attrs["category"] != "PerspectiveStartupScan" ||
				e.attrs["stream_count"] != int64(3) || e.attrs["perspective_count"] != int64(1) {
				t.Errorf("entry %v", e)
			}
		}
		if completed[0].attrs["left_count"] != int64(1) {
			t.Errorf("entry %v, want one left", completed[0])
		}
	})
	t.Run("blocks_live_batches", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 1, "blocking")
		token := queryOne[int64](t, w.pool, `
			select rewind.claim_perspective_stream_lock(active_generation, rewind.stream_id('t', 'a'), 'somebody', 'maintenance') from rewind.perspectives`)
		w.append("other", inOrder(3)...)
		var log entries
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		stop := start(t, k)
		eventually(t, func() bool { return len(log.withID(54)) > 0 })
		if k.Ready() || w.lag() != 3 {
			t.Errorf("ready %t, %d records unread, want not ready and 3", k.Ready(), w.lag())
		}
		w.exec(`select rewind.release_perspective_stream_lock(active_generation, rewind.stream_id('t', 'a'), $1) from rewind.perspectives`, token)
		eventually(t, func() bool { return k.Ready() && w.lag() == 0 })
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		w.checkSettled()
	})
	t.Run("failing_stream_is_waited_for", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 1, "blocking")
		w.exec(`select from rewind.set_options($1)`, map[string]any{"retry_backoff": "1ms", "retry_backoff_max": "1ms", "max_attempts": 3})
		w.append("a", testEvent{at: 3, v: 1, fail: true})
		w.apply()
		var log entries
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		stop := start(t, k)
		eventually(t, k.Ready)
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if c := w.cursor("a"); c.Status&4 == 0 {
			t.Errorf("cursor: %+v", c)
		}
		if len(log.withID(55)) != 1 || len(log.withID(58)) == 0 {
			t.Errorf("entries 55: %v, 58: %v", log.withID(55), log.withID(58))
		}
	})
	t.Run("background", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 1, "background")
		var log entries
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		stop := start(t, k)
		w.append("other", inOrder(3)...)
		eventually(t, func() bool { return k.Ready() && w.lag() == 0 })
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if c := w.cursor("a"); c.Status != 32 {
			t.Errorf("cursor: %+v, want it to wait for its debounce", c)
		}
		if len(log.withID(54)) != 1 || len(log.withID(55)) > 0 {
			t.Errorf("entries 54: %v, 55: %v, want only 54", log.withID(54), log.withID(55))
		}
	})
	t.Run("disabled", func(t *testing.T) {
		t.Parallel()
		w := flaggedWorld(t, 1, "blocking")
		w.exec(`select from rewind.set_options('{"startup_scan_enabled": false}')`)
		var log entries
		k := newWorker(t, w, worker.Config{Logger: log.logger()})
		stop := start(t, k)
		eventually(t, k.Ready)
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		if c := w.cursor("a"); c.Status != 32 || len(log.withID(54)) > 0 {
			t.Errorf("cursor %+v, entries 54: %v", c, log.withID(54))
		}
	})
}

// lag is how many records no batch has read.
func (w *world) lag() int64 {
	w.t.Helper()
	return queryOne[int64](w.t, w.pool, `
		select coalesce(sum(u.head_offset - u.next_offset), 0)::bigint
		from rewind.perspective_generations g, rewind._unread_partitions(g.generation_id) u`)
}
