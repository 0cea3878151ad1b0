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
	// repetitions, in a round, of what takes some milliseconds at most.
	repetitions int
	// span of what is measured by the clock.
	span time.Duration
	// longSpan is that of what is measured while a worker runs.
	longSpan time.Duration
	// snapshotAge is how long a snapshot has been open when appends beside it are measured.
	snapshotAge time.Duration
	// events of a log that is read or folded.
	events int
	// longStream and shortStream are the events of streams that are rewound.
	longStream, shortStream int
	// fullStream and wallStream are those of streams whose rewinds are compared with full replays, by count and by time.
	fullStream, wallStream int
	// stormEvents arrive in random order, in stormBatches.
	stormEvents, stormBatches int
	// updates of each cursor, to see what they leave behind.
	updates int
}

var scales = []scale{
	{
		name: "small", rounds: 3, longRounds: 3, repetitions: 20,
		span: 500 * time.Millisecond, longSpan: 3 * time.Second, snapshotAge: 2 * time.Second,
		events: 40_000, longStream: 40_000, shortStream: 1000,
		fullStream: 10_000, wallStream: 20_000, stormEvents: 10_000, stormBatches: 100, updates: 20,
	},
	{
		name: "medium", rounds: 5, longRounds: 3, repetitions: 20,
		span: 3 * time.Second, longSpan: 20 * time.Second, snapshotAge: 30 * time.Second,
		events: 1_000_000, longStream: 1_000_000, shortStream: 1000,
		fullStream: 10_000, wallStream: 100_000, stormEvents: 10_000, stormBatches: 100, updates: 100,
	},
	{
		name: "large", rounds: 5, longRounds: 3, repetitions: 20,
		span: 10 * time.Second, longSpan: time.Minute, snapshotAge: time.Minute,
		events: 10_000_000, longStream: 10_000_000, shortStream: 1000,
		fullStream: 10_000, wallStream: 1_000_000, stormEvents: 10_000, stormBatches: 100, updates: 100,
	},
	{ // for tests
		name: "tiny", hidden: true, rounds: 2, longRounds: 1, repetitions: 3,
		span: 50 * time.Millisecond, longSpan: 500 * time.Millisecond, snapshotAge: 100 * time.Millisecond,
		events: 2_000, longStream: 4_000, shortStream: 1000,
		fullStream: 1_000, wallStream: 2_000, stormEvents: 500, stormBatches: 10, updates: 5,
	},
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
