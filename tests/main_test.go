// Package tests holds the tests that need a database.
package tests

import (
	"flag"
	"os"
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func init() {
	// A check works on a database of its own; the command line may ask for more of them.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}

func TestMain(m *testing.M) {
	if url := os.Getenv(workerURLVariable); url != "" {
		os.Exit(runWorkerProcess(url))
	}
	testdb.Main(m)
}
