package tests

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rewindpg/rewind/internal/testdb"
)

// storm delivers one stream's events in random order, in batches, by the test's clock, with the live path and the rewind path serving
// it meanwhile. A rewind takes a millisecond for each event that it folds.
type storm struct {
	*world
	folded   int64         // by the live path and by rewinds
	rewinds  int           // how many
	rewound  time.Duration // how long they took
	began    time.Time
	now      time.Time
	perEvent time.Duration
}

func newStorm(t *testing.T, options map[string]any) *storm {
	s := &storm{world: &world{t: t, pool: testdb.New(t)}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), perEvent: time.Millisecond}
	s.exec(foldSQL)
	s.exec(repairSQL)
	s.exec(`create function app.claim() returns int language sql as $$
		insert into app.repairs (state)
		select row(c.generation_id, c.stream_id, c.token, 'begin', null, false, null, null, null, null, 0, 0, 0, null, 0, null, null)::rewind.repair_state
		from rewind.claim_perspective_rewinds('tester') c
		returning id $$`)
	s.exec(`select from rewind.create_tree('t', 1)`)
	s.exec(`select from rewind.create_perspective('p', 't', 'app.chain(jsonb, rewind.event)', p_options => $1)`, options)
	s.began = s.now
	testdb.SetClock(t, s.pool, s.now)
	return s
}

func (s *storm) advance(by time.Duration) {
	s.now = s.now.Add(by)
	testdb.Advance(s.t, s.pool, by)
}

// serve does what is due now.
func (s *storm) serve() {
	s.t.Helper()
	for {
		var read, folded int64
		if err := s.pool.QueryRow(s.t.Context(), `select records_read, events_folded from rewind.apply_perspective_batch('p', 0)`).Scan(&read, &folded); err != nil {
			s.t.Fatal(err)
		}
		s.folded += folded
		if read == 0 {
			break
		}
	}
	for {
		id := queryOne[*int32](s.t, s.pool, `select app.claim()`)
		if id == nil {
			return
		}
		for phase := ""; phase != "done"; {
			var folded int64
			err := s.pool.QueryRow(s.t.Context(), `update app.repairs r set state = rewind._repair_step(r.state) where id = $1 returning (state).phase, (state).events_folded`, *id).Scan(&phase, &folded)
			if err != nil {
				s.t.Fatal(err)
			}
			switch phase {
			case "complete":
				s.folded += folded
				s.rewinds++
				s.rewound += time.Duration(folded) * s.perEvent
				s.advance(time.Duration(folded) * s.perEvent)
			case "failed", "lost":
				s.t.Fatalf("repair %s", phase)
			}
		}
	}
}

// deliver appends n events in random order in batches, apart in time, and serves until nothing is owed.
func (s *storm) deliver(n, batch int, apart time.Duration) {
	s.t.Helper()
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for i := 0; i < n; i += batch {
		events := make([]testEvent, batch)
		for j, at := range order[i : i+batch] {
			events[j] = testEvent{at: at * 10, v: at}
		}
		s.append("s", events...)
		if apart > 0 {
			s.serve()
			s.advance(apart)
		}
	}
	for range 200 {
		s.serve()
		if queryOne[int32](s.t, s.pool, `select status from rewind.perspective_cursors`) == 2 {
			s.checkSettled()
			return
		}
		s.advance(10 * time.Second)
	}
	s.t.Fatal("the storm never settled")
}

func TestStormOfLateEvents(t *testing.T) {
	t.Parallel()
	const n = 10000
	for name, test := range map[string]struct {
		apart   time.Duration
		options map[string]any
		most    float64 // events folded per event
	}{
		"at once":                       {most: 1.1},
		"1 s apart":                     {apart: time.Second, most: 3},
		"6 s apart, with a defer ratio": {apart: 6 * time.Second, options: map[string]any{"defer_ratio": 0.25, "max_staleness": "20m"}, most: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStorm(t, test.options)
			s.deliver(n, n/100, test.apart)
			t.Logf("%.2f events folded per event in %d rewinds", float64(s.folded)/n, s.rewinds)
			if float64(s.folded) > test.most*n {
				t.Errorf("%.2f events folded per event, want at most %v", float64(s.folded)/n, test.most)
			}
		})
	}
	t.Run("6 s apart, within the share", func(t *testing.T) {
		t.Parallel()
		s := newStorm(t, nil)
		s.perEvent = 10 * time.Millisecond
		s.deliver(n/5, n/500, 6*time.Second)
		elapsed := s.now.Sub(s.began)
		t.Logf("%v of %v rewinding, in %d rewinds", s.rewound, elapsed, s.rewinds)
		last := time.Duration(n/5) * s.perEvent // the share is paid after a rewind, the last one's is still owed
		if s.rewound > elapsed/10+last {
			t.Errorf("rewinds took %v of %v, more than their share of a tenth", s.rewound, elapsed)
		}
		if s.rewinds < 3 {
			t.Errorf("%d rewinds are too few to show anything", s.rewinds)
		}
	})
}
