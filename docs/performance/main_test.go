package main

import (
	"os"
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
