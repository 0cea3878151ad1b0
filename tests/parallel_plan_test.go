package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What runs for every batch, repair and poll reads little, whatever the planner thinks of a long stream: starting parallel workers or
// compiling it takes a hundred times as long as running it.
func TestShortStatementsRunAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"inline_rewind_events": 0}})
	w.appendUpTo(0, 60_000, 5_000)
	w.exec(`analyze`)

	config := w.pool.Config().ConnConfig.Copy()
	var plans []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if strings.Contains(notice.Message, "plan:") {
			plans = append(plans, notice.Message)
		}
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), `load 'auto_explain'`); err != nil {
		missing(t, "the module auto_explain on the server")
		return
	}
	exec(`set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; set auto_explain.log_analyze = on;
		set auto_explain.log_timing = off; set auto_explain.log_level = notice;
		set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set max_parallel_workers_per_gather = 2; set jit = on; set jit_above_cost = 1000`)

	generation := queryOne[int](t, conn, `select active_generation from rewind.perspectives where perspective_name = 'p'`)
	for i, depth := range []int{5, 500, 50_000} {
		w.append("s", testEvent{at: 10*(60_000-depth) + i + 1, v: 1})
		exec(`select from rewind.apply_perspective_batch('p', 0)`)
		exec(`select from rewind._find_work($1, null)`, []string{"p"})
		exec(`call rewind.catch_up('p')`)
	}
	w.append("s", testEvent{at: 600_010, v: 1})
	exec(`select from rewind.store_perspective_events($1, 0, 60000, 60004)`, generation)
	if len(plans) < 100 {
		t.Errorf("%d plans seen", len(plans))
	}
	seen := map[string]bool{}
	for _, plan := range plans {
		text, _, _ := strings.Cut(plan[strings.Index(plan, "Query Text:"):], "\n  ->")
		for _, sign := range []string{"Gather", "JIT:"} {
			if strings.Contains(plan, sign) && !seen[text] {
				seen[text] = true
				t.Errorf("%s in the plan of %s", sign, fmt.Sprintf("%.300s", text))
			}
		}
	}
}
