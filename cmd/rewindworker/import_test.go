package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestImport(t *testing.T) {
	t.Parallel()

	t.Run("again_adds_nothing", func(t *testing.T) {
		t.Parallel()
		url := testdb.NewURL(t)
		file := writeLines(t,
			`{"stream":"a","type":"x","time":1000}`,
			`{"stream":"a","type":"x","time":1000}`, // a twin
			``,
			`{"stream":"b","type":"x","time":"1970-01-01T00:00:01Z","payload":{"n":1},"metadata":{"m":2}}`,
			`{"stream":"a","tenant_id":"t","type":"x","event_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`,
			`{"stream":"a","type":"y","time":500}`)
		var result importResult
		decode(t, runCommand(t, exitDone, "import", "--database-url", url, "--tree=new", "--json", file), &result)
		if want := (importResult{Events: 5, New: 5, Streams: 3}); result != want {
			t.Errorf("first: %+v, want %+v", result, want)
		}
		decode(t, runCommand(t, exitDone, "import", "--database-url", url, "--tree=new", "--json", file), &result)
		if want := (importResult{Events: 5, Duplicates: 5, Streams: 3}); result != want {
			t.Errorf("again: %+v, want %+v", result, want)
		}
		got := rowsOf(t, testdb.Open(t, url), `
			select format('%s/%s %s %s', s.tenant_id, s.stream_key, w.stream_version, w.event_type)
			from rewind.wal w join rewind.streams s using (stream_id) order by 1`)
		want := []string{"/a 1 x", "/a 2 x", "/a 3 y", "/b 1 x", "t/a 1 x"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("log (-want +got):\n", diff)
		}
	})

	// More lines than a batch has, all of one time: the rank among them runs on through the file.
	t.Run("ranks_equal_times_over_the_whole_file", func(t *testing.T) {
		t.Parallel()
		url := testdb.NewURL(t)
		var lines []string
		for i := range 2*batchLines + 1 {
			lines = append(lines, fmt.Sprintf(`{"stream":"a","type":"x","time":1000,"payload":%d}`, i))
		}
		runCommand(t, exitDone, "import", "--database-url", url, "--tree=t", writeLines(t, lines...))
		disordered := rowsOf(t, testdb.Open(t, url), `
			select stream_version::text from (
			  select stream_version, row_number() over (order by event_id) as place, payload from rewind.wal
			) w where stream_version <> place or payload::int <> stream_version - 1`)
		if len(disordered) > 0 {
			t.Errorf("%d events are not in the order of the file", len(disordered))
		}
	})

	t.Run("makes_the_ids_that_append_events_makes", func(t *testing.T) {
		t.Parallel()
		url := testdb.NewURL(t)
		pool := testdb.Open(t, url)
		exec(t, pool, `select rewind.create_tree('t')`)
		exec(t, pool, `select rewind.append_events('t', 'a', '[
			{"type": "x", "time": 1000.5, "payload": null}, {"type": "x", "time": 1000.5}, {"type": "y", "time": 7, "metadata": {"m": 1}}]')`)
		file := writeLines(t,
			`{"stream":"a","type":"x","time":1000.5}`,
			`{"stream":"a","type":"x","time":1000.5,"payload":null}`,
			`{"stream":"a","type":"y","time":7,"metadata":{"m":1}}`)
		var result importResult
		decode(t, runCommand(t, exitDone, "import", "--database-url", url, "--tree=t", "--json", file), &result)
		if want := (importResult{Events: 3, Duplicates: 3, Streams: 1}); result != want {
			t.Errorf("%+v, want %+v", result, want)
		}
	})

	t.Run("says_what_it_did", func(t *testing.T) {
		t.Parallel()
		url := testdb.NewURL(t)
		file := writeLines(t, `{"stream":"a","type":"x","time":1}`)
		done := "done: 1 event of 1 stream read from " + file
		if output := runCommand(t, exitDone, "import", "--database-url", url, "--tree=made", file); output != "tree made made\n"+done+", 1 new and appended, 0 there already\n" {
			t.Error(output)
		}
		if output := runCommand(t, exitDone, "import", "--database-url", url, "--tree=made", file); output != done+", 0 new and appended, 1 there already\n" {
			t.Error(output)
		}
	})

	t.Run("reads_gzip", func(t *testing.T) {
		t.Parallel()
		file, err := os.Create(filepath.Join(t.TempDir(), "events"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		w := gzip.NewWriter(file)
		if _, err := w.Write([]byte(`{"stream":"a","type":"x","time":1}`)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var result importResult
		decode(t, runCommand(t, exitDone, "import", "--database-url", testdb.NewURL(t), "--tree=t", "--json", file.Name()), &result)
		if result.New != 1 {
			t.Errorf("%+v, want one new event", result)
		}
	})

	t.Run("reads_a_pipe", func(t *testing.T) {
		t.Parallel()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := w.WriteString(`{"stream":"a","type":"x","time":1}`); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var result importResult
		decode(t, runCommand(t, exitDone, "import", "--database-url", testdb.NewURL(t), "--tree=t", "--json",
			fmt.Sprintf("/dev/fd/%d", r.Fd())), &result)
		if result.New != 1 {
			t.Errorf("%+v, want one new event", result)
		}
	})

	t.Run("many_tenants_beside_other_writers", func(t *testing.T) {
		t.Parallel()
		url := testdb.NewURL(t)
		pool := testdb.Open(t, url)
		exec(t, pool, `select rewind.create_tree('t', 4)`)
		ctx, stop := context.WithCancel(t.Context())
		writer := make(chan error)
		go func() {
			for i := 0; ; i++ {
				_, err := pool.Exec(ctx, `select rewind.append_events('t', $1, '[{"type": "x"}]')`, fmt.Sprint("w", i))
				if err != nil {
					if ctx.Err() != nil {
						err = nil
					}
					writer <- err
					return
				}
			}
		}()
		var lines []string
		for i := range 100 {
			lines = append(lines, fmt.Sprintf(`{"stream":"a%d","tenant_id":"t%d","type":"x","time":1}`, i, i%7))
		}
		runCommand(t, exitDone, "import", "--database-url", url, "--tree=t", writeLines(t, lines...))
		stop()
		if err := <-writer; err != nil {
			t.Error(err)
		}
		if n := len(rowsOf(t, pool, `select stream_key from rewind.streams where tenant_id <> ''`)); n != 100 {
			t.Errorf("%d streams, want 100", n)
		}
	})
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	exec(t, pool, `select rewind.create_tree('t')`)
	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "x", "event_id": "01890a5d-ac96-774b-bcce-b302099a8057"}]')`)
	const good = `{"stream":"a","type":"x","time":1}`
	for name, c := range map[string]struct {
		line string
		want string
	}{
		"no_json":           {`{bad`, `line 2: invalid input syntax for type json`},
		"no_object":         {`[]`, `line 2: not an object`},
		"zero_character":    {`{"stream":"a","type":"x","payload":"\u0000"}`, `line 2: unsupported Unicode escape sequence`},
		"invalid_utf8":      {"{\"stream\":\"a\xff\",\"type\":\"x\"}", `line 2: invalid byte sequence`},
		"huge_number":       {`{"stream":"a","type":"x","payload":1e300000}`, `line 2: value overflows numeric format`},
		"no_stream":         {`{"type":"x"}`, `line 2: stream: missing`},
		"number_as_stream":  {`{"stream":1,"type":"x"}`, `line 2: stream: not text`},
		"long_stream":       {`{"stream":"` + strings.Repeat("ä", 251) + `","type":"x"}`, `line 2: stream: longer than 500 bytes`},
		"number_as_tenant":  {`{"stream":"a","tenant_id":1,"type":"x"}`, `line 2: tenant_id: not text`},
		"no_type":           {`{"stream":"a"}`, `line 2: type: missing`},
		"unknown_key":       {`{"stream":"a","type":"x","when":1}`, `line 2: when: unknown key`},
		"malformed_time":    {`{"stream":"a","type":"x","time":"noon"}`, `line 2: time: neither`},
		"time_and_event_id": {`{"stream":"a","type":"x","time":1,"event_id":"01890a5d-ac96-774b-bcce-b302099a8058"}`, `line 2: time: event_id has a time already`},
		"random_uuid":       {`{"stream":"a","type":"x","event_id":"01890a5d-ac96-474b-bcce-b302099a8057"}`, `line 2: event id is not a UUIDv7`},
		"future":            {`{"stream":"a","type":"x","time":"2999-01-01T00:00:00Z"}`, `line 2: event is further in the future`},
		"reused_event_id":   {`{"stream":"a","type":"y","event_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`, `(RW002)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := writeLines(t, good, c.line, good)
			stderr := runFailing(t, "import", "--database-url", url, "--tree=t", file)
			if !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "nothing was appended") || !strings.Contains(stderr, file) {
				t.Errorf("stderr doesn't name file and reason %q: %s", c.want, stderr)
			}
		})
	}
	t.Cleanup(func() { // after the parallel tests
		var events int
		if err := pool.QueryRow(context.Background(), `select count(*) from rewind.wal`).Scan(&events); err != nil || events != 1 {
			t.Errorf("the log has %d events (%v), want the one from before", events, err)
		}
	})

	t.Run("names_all_bad_lines", func(t *testing.T) {
		t.Parallel()
		stderr := runFailing(t, "import", "--database-url", url, "--tree=t", writeLines(t, good, `{`, good, `{"type":1}`, good, `}`))
		for _, want := range []string{"line 2: ", "line 4: stream: missing", "line 4: type: not text", "line 6: "} {
			if !strings.Contains(stderr, want) {
				t.Errorf("stderr lacks %q: %s", want, stderr)
			}
		}
	})

	t.Run("stops_looking_after_many", func(t *testing.T) {
		t.Parallel()
		lines := make([]string, 2*batchLines)
		for i := range lines {
			lines[i] = "{"
		}
		stderr := runFailing(t, "import", "--database-url", url, "--tree=t", writeLines(t, lines...))
		if !strings.Contains(stderr, "line 20: ") || !strings.Contains(stderr, "and 80 more") || !strings.Contains(stderr, "was not looked at") {
			t.Error(stderr)
		}
	})

	t.Run("names_a_directory", func(t *testing.T) {
		dir := t.TempDir()
		if stderr := runFailing(t, "import", "--database-url", url, "--tree=t", dir); !strings.Contains(stderr, dir+" is a directory") {
			t.Error(stderr)
		}
	})

	t.Run("makes_no_tree", func(t *testing.T) {
		t.Parallel()
		runFailing(t, "import", "--database-url", url, "--tree=unmade", writeLines(t, `{"stream":"a","type":"x","time":"2999-01-01T00:00:00Z"}`))
		if trees := rowsOf(t, pool, `select tree_name from rewind.trees where tree_name = 'unmade'`); len(trees) != 0 {
			t.Error("the tree is there")
		}
	})
}

func writeLines(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func rowsOf(t *testing.T, pool *pgxpool.Pool, query string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
