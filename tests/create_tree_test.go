package tests

import (
	"strings"
	"sync"
	"testing"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

func TestCreateTree(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	mustExec(t, pool, `select rewind.create_tree('plain')`)
	if n := queryOne[int64](t, pool, `select count(*) from rewind.partitions where tree_name = 'plain' and next_offset = 0 and last_hlc is null`); n != 64 {
		t.Errorf("%d empty partitions, want 64", n)
	}
	mustExec(t, pool, `select rewind.create_tree('small', 3, '{"max_clock_skew": "5m"}')`)
	mustExec(t, pool, `select rewind.create_tree('small', 3)`)
	if got := queryOne[string](t, pool, `select options ->> 'max_clock_skew' from rewind.create_tree('small', 3)`); got != "5m" {
		t.Errorf("the skew is %s", got)
	}
	wantCode(t, pool, "RW007", `select rewind.create_tree('small')`)
	for _, call := range []string{`''`, `null`, `'x', 0`, `'x', 1025`, `'x', null`, `'x', 1, '{"debounce_window": "1s"}'`, `repeat('x', 501)`} {
		wantCode(t, pool, "22023", `select rewind.create_tree(`+call+`)`)
	}
	mustExec(t, pool, `select rewind.create_tree(repeat('x', 500), 1024)`)

	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := rewind.CreateTree(t.Context(), pool, "at once", 2); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := queryOne[int64](t, pool, `select count(*) from rewind.tree_partitions p join rewind.trees t using (tree_id) where tree_name = 'at once'`); n != 2 {
		t.Errorf("%d partitions, want 2", n)
	}
}

func TestSetOptions(t *testing.T) {
	t.Parallel()
	pool := newLog(t, 1)
	options := func(call string) map[string]any {
		t.Helper()
		return queryOne[map[string]any](t, pool, `select rewind.set_options(`+call+`)`)
	}
	if all := options(`'{}'`); all["debounce_window"] != "5s" || all["max_clock_skew"] != "1m" || all["defer_ratio"] != nil ||
		len(all) != queryOne[int](t, pool, `select count(*) from jsonb_object_keys(rewind._option_defaults())`) {
		t.Errorf("defaults: %v", all)
	}
	options(`'{"max_clock_skew": "2m", "debounce_window": "1h30m"}'`)
	if own := options(`'{"max_clock_skew": "0s"}', p_tree => 't'`); own["max_clock_skew"] != "0s" || own["debounce_window"] != "1h30m" {
		t.Errorf("of the tree: %v", own)
	}
	if own := options(`'{"max_clock_skew": null}', p_tree => 't'`); own["max_clock_skew"] != "2m" {
		t.Errorf("of the tree, taken out: %v", own["max_clock_skew"])
	}
	if all := options(`'{"max_clock_skew": null, "debounce_window": null}'`); all["max_clock_skew"] != "1m" || all["debounce_window"] != "5s" {
		t.Errorf("taken out: %v", all)
	}

	for _, value := range []string{
		`"rewind_enabled": 1`, `"rewind_share": 0`, `"rewind_share": 1.5`, `"rewind_share": "0.1"`, `"defer_ratio": -1`,
		`"inline_rewind_events": -1`, `"inline_rewind_events": 1.5`, `"max_attempts": 0`, `"max_concurrent_rewinds": "3"`,
		`"debounce_window": "-1s"`, `"debounce_window": "1"`, `"debounce_window": "soon"`, `"debounce_window": 5`, `"debounce_window": ""`, `"debounce_window": "1mon"`,
		`"skew_policy": "drop"`, `"startup_rewind_mode": "no"`, `"log_level": "loud"`, `"unknown": 1`,
		`"stream_lock_timeout": "20s"`, `"stream_lock_keepalive_interval": "15s"`,
	} {
		wantCode(t, pool, "22023", `select rewind.set_options($1)`, `{`+value+`}`)
	}
	options(`'{"stream_lock_timeout": "20s", "stream_lock_keepalive_interval": "9s"}'`)
	for _, key := range strings.Fields(`debounce_window log_level max_concurrent_rewinds`) {
		wantCode(t, pool, "22023", `select rewind.set_options(jsonb_build_object($1::text, null), p_tree => 't')`, key)
	}
	wantCode(t, pool, "RW005", `select rewind.set_options('{}', p_tree => 'nowhere')`)
	wantCode(t, pool, "RW006", `select rewind.set_options('{}', p_perspective => 'nobody')`)
	wantCode(t, pool, "22023", `select rewind.set_options('{}', p_perspective => 'p', p_tree => 't')`)
	wantCode(t, pool, "22023", `select rewind.set_options('[]')`)

	mustExec(t, pool, `create function public.apply(model jsonb, event rewind.event) returns jsonb language sql immutable return model`)
	mustExec(t, pool, `select rewind.create_perspective('p', 't', 'public.apply(jsonb, rewind.event)')`)
	if own := options(`'{"stream_lock_timeout": "40s"}', p_perspective => 'p'`); own["stream_lock_timeout"] != "40s" || own["stream_lock_keepalive_interval"] != "9s" {
		t.Errorf("of the perspective: %v", own)
	}
	// What fits the installation must fit each perspective too.
	wantCode(t, pool, "22023", `select rewind.set_options('{"stream_lock_timeout": "10s"}', p_perspective => 'p')`)
	options(`'{"stream_lock_timeout": "10m"}'`)
	wantCode(t, pool, "22023", `select rewind.set_options('{"stream_lock_keepalive_interval": "30s"}')`)
	for _, key := range []string{"max_clock_skew", "log_level"} {
		wantCode(t, pool, "22023", `select rewind.set_options(jsonb_build_object($1::text, null), p_perspective => 'p')`, key)
	}
}
