package bench_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rewindpg/rewind/internal/bench"
	"github.com/rewindpg/rewind/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A run that ends, or is interrupted anywhere, leaves no database behind, and keeps what it has found.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(bench.Progress) bool{
		"ends":                       func(bench.Progress) bool { return false },
		"interrupted at the start":   func(bench.Progress) bool { return true },
		"interrupted while it fills": func(p bench.Progress) bool { return p.Scenario == "feed" && strings.HasPrefix(p.Doing, "appending") },
		"interrupted in a round":     func(p bench.Progress) bool { return p.Scenario == "feed" && strings.HasPrefix(p.Doing, "round") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.NewEmptyURL(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			databases := map[string]bool{}
			interrupted, found := false, 0
			report, err := bench.Run(ctx, bench.Config{
				URL: url, Only: []string{"append_single", "feed"}, Scale: "tiny",
				Progress: func(p bench.Progress) {
					databases[p.Database] = true
					if !interrupted {
						found = p.Nth - 1
					}
					if until(p) {
						interrupted = true
						cancel()
					}
				},
			})
			if name == "ends" {
				found = 2
			}
			if interrupted != errors.Is(err, context.Canceled) || interrupted == (name == "ends") {
				t.Errorf("interrupted: %t, error: %v", interrupted, err)
			}
			if len(report.Results) != found {
				t.Errorf("%d results, want %d", len(report.Results), found)
			}
			pool := testdb.Open(t, url)
			if len(databases) == 0 {
				t.Error("there was no database")
			}
			for database := range databases {
				var exists bool
				if err := pool.QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, database).Scan(&exists); err != nil {
					t.Fatal(err)
				}
				if exists {
					t.Errorf("database %q is left", database)
				}
			}
		})
	}
}
