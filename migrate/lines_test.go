package migrate

import "testing"

func TestLineOf(t *testing.T) {
	t.Parallel()
	text := "ä ö\nselect\n  x\n"
	for position, want := range map[int]int{1: 1, 3: 1, 4: 1, 5: 2, 12: 3, 14: 3} {
		if got := lineOf(text, position); got != want {
			t.Errorf("character %d is in line %d, want %d", position, got, want)
		}
	}
}
