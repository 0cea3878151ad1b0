package tests

import "testing"

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
