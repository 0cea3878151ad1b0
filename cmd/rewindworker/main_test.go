package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/migrate"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestMigrate(t *testing.T) {
	t.Parallel()
	database := "--database-url=" + testdb.NewEmptyURL(t)

	if output := runCommand(t, exitSchema, "migrate", "status", database); !strings.Contains(output, "missing") {
		t.Errorf("status of an empty database: %s", output)
	}
	var result migrate.Result
	decode(t, runCommand(t, exitDone, "migrate", "--json", database), &result)
	if !result.BundleApplied || len(result.Migrations) == 0 {
		t.Errorf("migrate did nothing: %+v", result)
	}
	if output := runCommand(t, exitDone, "migrate", database); !strings.HasPrefix(output, "nothing to do") {
		t.Errorf("migrate again: %s", output)
	}
	var state migrate.State
	decode(t, runCommand(t, exitDone, "migrate", "status", "--json", database), &state)
	if state.Schema != "current" || len(state.Migrations) != len(result.Migrations) {
		t.Errorf("status: %+v", state)
	}
	if output := runCommand(t, exitDone, "migrate", "print"); !strings.Contains(output, "create table rewind.wal") {
		t.Errorf("print: %s", output)
	}
}

func TestEmbeddedServer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "rewind-test-") // t.TempDir's parent is closed to the user that runs the server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if output := runCommand(t, exitDone, "migrate", "--data-dir", dir); !strings.Contains(output, "done: ") {
		t.Errorf("migrate: %s", output)
	}
	output, notes := runBoth(t, exitDone, "migrate", "status", "--data-dir", dir)
	if !strings.Contains(output, "current") || !strings.Contains(notes, "using the server of its own in "+dir) {
		t.Errorf("status: %s%s", output, notes)
	}
	if _, notes := runBoth(t, exitDone, "run", "--until-idle", "--data-dir", dir); !strings.Contains(notes, "psql 'postgres://") {
		t.Errorf("run doesn't say how to connect: %s", notes)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	unreachable := url.URL{Scheme: "postgres", Host: "127.0.0.1:1", Path: "/postgres"}
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"help":              {[]string{"--help"}, exitDone},
		"version":           {[]string{"version", "--json"}, exitDone},
		"no_command":        {nil, exitUsage},
		"unknown_flag":      {[]string{"version", "--nonsense"}, exitUsage},
		"malformed_url":     {[]string{"migrate", "--database-url", "postgres://localhost:x"}, exitUsage},
		"unreachable":       {[]string{"migrate", "--database-url", unreachable.String()}, exitNotReached},
		"schema_is_missing": {[]string{"migrate", "status", "--database-url", testdb.NewEmptyURL(t)}, exitSchema},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runCommand(t, c.want, c.args...)
		})
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr strings.Builder
	code := run(ctx, []string{"status", "--database-url", testdb.NewURL(t)}, io.Discard, &stderr, func(string) string { return "" })
	if code != exitFailed || stderr.String() != "rewindworker: interrupted\n" {
		t.Errorf("code %d, %q", code, stderr.String())
	}
}

// runCommand returns what a command printed to standard output.
func runCommand(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	stdout, _ := runBoth(t, wantCode, args...)
	return stdout
}

// runFailing returns what a command that fails printed to standard error.
func runFailing(t *testing.T, args ...string) string {
	t.Helper()
	_, stderr := runBoth(t, exitFailed, args...)
	return stderr
}

func runBoth(t *testing.T, wantCode int, args ...string) (string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr, func(string) string { return "" })
	if code != wantCode {
		t.Errorf("rewindworker %q exits with %d, want %d: %s%s", args, code, wantCode, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
