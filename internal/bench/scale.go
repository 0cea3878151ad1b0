package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scale is how much is measured.
type scale struct {
	name   string
	hidden bool
	// rounds of comparisons, and of those that take long.
	rounds, longRounds int
	// span of what is measured by the clock.
	span time.Duration
	// events of a log that is read or folded.
	events int
}

var scales = []scale{
	{name: "small", rounds: 3, longRounds: 3, span: 500 * time.Millisecond, events: 40_000},
	{name: "medium", rounds: 5, longRounds: 3, span: 3 * time.Second, events: 1_000_000},
	{name: "large", rounds: 5, longRounds: 3, span: 10 * time.Second, events: 10_000_000},
	{name: "tiny", hidden: true, rounds: 2, longRounds: 2, span: 50 * time.Millisecond, events: 2_000}, // for tests
}

func scaleOf(name string) (scale, error) {
	if name == "" {
		name = "small"
	}
	i := slices.IndexFunc(scales, func(s scale) bool { return s.name == name })
	if i < 0 {
		var names []string
		for _, s := range scales {
			if !s.hidden {
				names = append(names, s.name)
			}
		}
		return scale{}, fmt.Errorf("there is no scale %q; there are %s", name, strings.Join(names, ", "))
	}
	return scales[i], nil
}
