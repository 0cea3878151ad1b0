package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
)

// execFile runs a file of SQL.
func execFile(t *testing.T, pool *pgxpool.Pool, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "examples"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, string(text))
}

func TestExampleOrders(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	execFile(t, pool, "orders", "apply_order.sql")
	execFile(t, pool, "orders", "perspective.sql")
	run(t, program(t), "import", "--database-url", url, "--tree=example_orders", "../examples/orders/orders.ndjson")
	mustExec(t, pool, `call rewind.catch_up('example_order_summary')`)

	want := []string{
		"order-1001 delivered 30", "order-1002 recall parcel 80", "order-1003 delivered 0", "order-1004 delivered 20", "order-1005 delivered 8",
		"order-1006 delivered 15", "order-1007 shipped 30", "order-1008 recall parcel 500", "order-1009 recall parcel 75", "order-1010 delivered 5",
	}
	got := texts(t, pool, `select format('%s %s %s', stream_key, model ->> 'status', model ->> 'due') from lens.example_order_summary order by stream_key`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("orders (-want +got):\n", diff)
	}
}

func TestExampleCommits(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	execFile(t, pool, "commits", "apply_commit.sql")
	execFile(t, pool, "commits", "perspective.sql")
	importCommits := func(lines string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "commits.ndjson")
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, program(t), "import", "--database-url", url, "--tree=commits", file)
		mustExec(t, pool, `call rewind.catch_up('commit_history')`)
	}
	model := func() string {
		t.Helper()
		return texts(t, pool, `
			select concat_ws(' ', model ->> 'commits', model ->> 'last_commit', model ->> 'last_commit_at', model ->> 'size', model ->> 'largest')
			from lens.commit_history where stream_key = 'lib'`)[0]
	}
	digest := func() string { return texts(t, pool, `select model ->> 'digest' from lens.commit_history`)[0] }

	importCommits(`{"stream":"lib","type":"area_changed","time":1000,"payload":{"commit":"a","added":10,"deleted":0}}
		{"stream":"lib","type":"area_changed","time":3000,"payload":{"commit":"c","added":1,"deleted":5}}`)
	if got, want := model(), "2 c 1970-01-01T00:00:03+00:00 6 10"; got != want {
		t.Errorf("model is %s, want %s", got, want)
	}
	before := digest()
	importCommits(`{"stream":"lib","type":"area_changed","time":2000,"payload":{"commit":"b","added":7,"deleted":0}}`)
	if got, want := model(), "3 c 1970-01-01T00:00:03+00:00 13 17"; got != want {
		t.Errorf("after a late commit the model is %s, want %s", got, want)
	}
	if digest() == before {
		t.Error("the digest is what it was before the late commit")
	}
}

func TestExampleGo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", "../examples/go", testdb.NewURL(t))
	cmd.Stderr = t.Output()
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "alice: balance 0, 1 refused\nalice: balance 70, 0 refused\n"; string(output) != want {
		t.Errorf("it prints %q, want %q", output, want)
	}
}

func TestExamplePython(t *testing.T) {
	t.Parallel()
	python := pythonWithPsycopg(t)
	if python == "" {
		missing(t, "a python3 with psycopg")
		return
	}
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	execFile(t, pool, "orders", "apply_order.sql")
	execFile(t, pool, "orders", "perspective.sql")
	output := run(t, python, "../examples/python/orders.py", url, "order-17")
	if want := "order-17 is shipped\norder-17 is recall parcel\n"; output != want {
		t.Errorf("it prints %q, want %q", output, want)
	}
}

// pythonWithPsycopg prefers the system's, for which packages are installed.
func pythonWithPsycopg(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import psycopg").Run() == nil {
			return python
		}
	}
	return ""
}
