// Package tests holds the tests that need a database.
package tests

import (
	"flag"
	"os"
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func init() {
	// A check works on a database of its own, so fewer checks than usual, of more steps; the command line may ask for more.
	for name, value := range map[string]string{"rapid.checks": "20", "rapid.steps": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

func TestMain(m *testing.M) {
	if url := os.Getenv(workerURLVariable); url != "" {
		os.Exit(runWorkerProcess(url))
	}
	testdb.Main(m)
}
