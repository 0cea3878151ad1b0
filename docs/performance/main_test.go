package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind/internal/bench"
)

// What the page shows is what the reports say.
func TestGenerated(t *testing.T) {
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what go run ./docs/performance makes of the reports (%v):\n%s", path, err, diff)
		}
	}
}

// A result is of one run: not the last of several reports.
func TestResultInTwoReports(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile("usual.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one.json", "two.json"} {
		if err := os.WriteFile(filepath.Join(root, folder, name), report, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := generate(root); err == nil || !strings.Contains(err.Error(), "in another report") {
		t.Errorf("two reports of the same: %v", err)
	}
}

// The page shows every result there is.
func TestDescriptions(t *testing.T) {
	text, err := os.ReadFile("../performance.md")
	if err != nil {
		t.Fatal(err)
	}
	names := bench.ResultNames()
	for _, name := range names {
		if descriptions[name].what == "" {
			t.Errorf("nothing says what %s is", name)
		}
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("docs/performance.md lacks %s", name)
		}
	}
	if len(descriptions) != len(names) {
		t.Errorf("%d descriptions of %d results", len(descriptions), len(names))
	}
}
