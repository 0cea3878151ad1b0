package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command whose output nobody reads any more, as in "rewindworker status | head -1", left its own server running for good.
func TestUnreadOutput(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for _, args := range [][]string{{"options", "--data-dir", dir}, {"--help"}} {
		if said, code := runUnread(t, args...); code != 141 || strings.Contains(said, "rewindworker:") {
			t.Errorf("%v: code %d, and it said %q", args, code, said)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION")); err != nil {
		t.Error("it had no server: ", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Error("its server still runs: ", err)
	}
}

// runUnread runs the program with an output that nobody reads, and returns what it printed to standard error.
func runUnread(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	cmd.Stdout, cmd.Stderr = writer, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return stderr.String(), cmd.ProcessState.ExitCode()
}
