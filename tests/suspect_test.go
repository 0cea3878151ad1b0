package tests

import (
	"testing"

	"github.com/rewindpg/rewind/worker"
)

// A fold that takes its whole batch down is found, and only its stream is set apart, until it is parked.
func TestFoldThatEndsItsBatch(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]string{
		"kills_its_backend": `perform pg_terminate_backend(pg_backend_pid())`,
		"hangs":             `perform pg_sleep(60)`,
		"uses_up_memory":    `raise 'out of memory' using errcode = '53200'`,
		"feigns_a_conflict": `raise 'try again' using errcode = '40001'`,
		"feigns_a_shutdown": `raise 'no more' using errcode = '57000'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{options: map[string]any{"retry_backoff": "1ms", "retry_backoff_max": "1ms", "max_attempts": 2}})
			w.exec(`create function app.crash(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
				begin
				  if event.payload ->> 'v' = '666' then ` + poison + `; end if;
				  return jsonb_build_object('n', coalesce((model ->> 'n')::int, 0) + 1);
				end $$`)
			w.exec(`select from rewind.create_perspective('crash', 't', 'app.crash(jsonb, rewind.event)', p_options => $1)`,
				map[string]any{"retry_backoff": "1ms", "retry_backoff_max": "1ms", "max_attempts": 2})
			if name == "hangs" {
				w.exec(`do $$ begin execute format('alter database %I set statement_timeout = ''300ms''', current_database()); end $$`)
				w.pool.Reset()
			}
			for range 3 {
				w.append("before", inOrder(20)...)
			}
			w.append("bad", testEvent{at: 1, v: 1}, testEvent{at: 2, v: 666}, testEvent{at: 3, v: 1})
			for range 3 {
				w.append("after", inOrder(20)...)
			}
			settle(t, w, newWorker(t, w, worker.Config{BatchSize: 100}))

			for _, s := range w.states("crash") {
				switch {
				case s.Stream == "bad":
					parked := queryOne[bool](t, w.pool, `
						select c.retry_at is null and c.attempts >= 2 from rewind.perspective_cursors c
						where c.generation_id = (select active_generation from rewind.perspectives where perspective_name = 'crash')
						  and c.stream_id = rewind.stream_id('t', 'bad')`)
					if s.Status&4 == 0 || !parked {
						t.Errorf("the stream that ends its batches is not parked: %+v", s)
					}
				case s.Status != 2 || s.AppliedVersion != 60:
					t.Errorf("another stream: %+v", s)
				}
			}
		})
	}
}
