// Package tests holds the tests that need a database.
package tests

import (
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
