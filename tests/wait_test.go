package tests

import (
	"testing"
	"time"
)

// eventually waits for a condition.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not come true")
		}
		time.Sleep(2 * time.Millisecond)
	}
}
