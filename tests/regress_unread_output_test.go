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
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), program(t), "options", "--data-dir", dir)
	cmd.Stdout, cmd.Stderr = writer, &said
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 141 || strings.Contains(said.String(), "rewindworker:") {
		t.Errorf("%v, and it said %q", err, said.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION")); err != nil {
		t.Error("it had no server: ", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Error("its server still runs: ", err)
	}
}
