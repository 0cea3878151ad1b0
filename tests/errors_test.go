package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every code that the database raises is in the documents and a sentinel in Go, and both have the same codes.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	codes := func(pattern string, files ...string) (all []string) {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
				all = append(all, m[1])
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	var functions []string
	err := filepath.WalkDir("../sql/functions", func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".sql" {
			functions = append(functions, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raised := codes(`'(RW\d{3})'`, functions...)
	documented := codes(`(?m)^\| (RW\d{3}) \|`, "../docs/errors.md")
	inGo := codes(`"(RW\d{3})": +Err\w+,`, "../errors.go")
	if diff := cmp.Diff(documented, inGo); diff != "" {
		t.Errorf("documented and in Go: %s", diff)
	}
	if len(raised) < 5 {
		t.Errorf("only %q are raised", raised)
	}
	for _, code := range raised {
		if !slices.Contains(documented, code) {
			t.Errorf("%s is raised and not documented", code)
		}
	}
	sentinels := codes("\\| `(Err\\w+)` \\|", "../docs/errors.md")
	if diff := cmp.Diff(sentinels, codes(`"RW\d{3}": +(Err\w+),`, "../errors.go")); diff != "" {
		t.Errorf("sentinels documented and in Go: %s", diff)
	}
}
