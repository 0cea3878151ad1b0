package tests

import (
	"strings"
	"testing"
)

// Values that were taken, and then ended every poll, batch or worker: a share whose pause is no interval, a keepalive of nothing, a
// lock timeout beyond the server's settings, a backoff that overflows when it doubles.
func TestOptionValuesThatNobodyCanUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for _, options := range []string{
		`{"rewind_share": 1e-200}`, `{"stream_lock_keepalive_interval": "0s"}`, `{"stream_lock_timeout": "1000h"}`,
		`{"stream_lock_timeout": "2us", "stream_lock_keepalive_interval": "0.9us"}`,
	} {
		wantCode(t, w.pool, "22023", `select rewind.set_options($1::text::jsonb, 'p')`, options)
	}
	for _, option := range []string{"max_clock_skew", "lateness_horizon", "history_retention", "system_retention"} {
		wantCode(t, w.pool, "22023", `select rewind.set_options(jsonb_build_object($1::text, '876001h'))`, option)
		w.exec(`select rewind.set_options(jsonb_build_object($1::text, '876000h'))`, option)
	}
	w.append("t", testEvent{at: 10, v: 1})
	w.exec(`select rewind.prune_history()`)
	wantCode(t, w.pool, "22023", `select rewind.set_options(null)`)

	w.exec(`select rewind.set_options('{"max_attempts": 100, "retry_backoff": "999999999h", "retry_backoff_max": "999999999h"}', 'p')`)
	w.append("s", testEvent{at: 10, v: 1, fail: true})
	w.apply()
	w.exec(`update rewind.perspective_cursors set attempts = 50`)
	w.catchUp()
	if c := w.cursor("s"); c.RetryAt == nil {
		t.Errorf("not to be tried again: %+v", c)
	}
}

// Values of functions' options that are not of their kind: a refusal that names the option, and not whatever a cast says.
func TestOptionsOfFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	for _, c := range []struct{ option, call string }{
		{"sample", `rewind.verify_perspective('p', p_options => '{"sample": "x"}')`},
		{"sample", `rewind.verify_perspective('p', p_options => '{"sample": 0}')`},
		{"sample", `rewind.verify_perspective('p', p_options => '{"sample": 1.5}')`},
		{"repair", `rewind.verify_perspective('p', p_options => '{"repair": "maybe"}')`},
		{"from_stream_id", `rewind.verify_perspective('p', p_options => '{"from_stream_id": "s"}')`},
		{"to_stream_id", `rewind.verify_perspective('p', p_options => '{"to_stream_id": 7}')`},
		{"generation_id", `rewind.verify_perspective('p', p_options => '{"generation_id": 99999999999}')`},
		{"max_streams", `rewind.certify_perspective('p', '{"max_streams": 0}')`},
		{"from_stream_id", `rewind.certify_perspective('p', '{"from_stream_id": "s"}')`},
		{"streams", `rewind.check_perspective('p', '{"streams": 1.5}')`},
		{"events", `rewind.check_perspective('p', '{"events": "many"}')`},
		{"hold", `rewind.begin_perspective_rebuild('p', p_options => '{"hold": "yes"}')`},
		{"wait", `rewind.pause_perspective('p', '{"wait": 1}')`},
		{"timeout", `rewind.repartition_tree('t', 2, '{"timeout": "soon"}')`},
		{"timeout", `rewind.repartition_tree('t', 2, '{"timeout": 5}')`},
		{"lease", `rewind.create_feed_consumer('c', 't', p_options => '{"lease": "-1s"}')`},
		{"lease", `rewind.create_feed_consumer('c', 't', p_options => '{"lease": "a while"}')`},
		{"max_bytes", `rewind.read_feed('t', p_options => '{"max_bytes": 0}')`},
		{"max_records", `rewind.trim_tree('t', '{}', '{"max_records": "all"}')`},
		{"tenant_id", `rewind.explain_model('p', 's', '{"tenant_id": 5}')`},
		{"tenant_id", `rewind.append_events('t', 's', '[]', p_options => '{"tenant_id": []}')`},
		{"error_event_id", `rewind.complete_perspective_cursor_work(1, '00000000-0000-0000-0000-000000000000', 1, null, null, 0, 0,
			p_options => '{"error_event_id": "e"}')`},
	} {
		if refusal := wantCode(t, w.pool, "22023", `select from `+c.call); !strings.HasPrefix(refusal.Message, `option "`+c.option+`" must be `) {
			t.Errorf("%s: %s", c.call, refusal.Message)
		}
	}
	// JSON null: not given.
	w.exec(`select from rewind.verify_perspective('p', p_options => '{"sample": null, "repair": null, "generation_id": null}')`)
	w.exec(`select from rewind.create_feed_consumer('c', 't', p_options => '{"lease": null}')`)
}
