package bench

import (
	"context"
	"fmt"
	"time"
)

// lateBy is how many events of its stream happened after a late one.
const lateBy = 100

// lateStream is a stream of so many events, alone in its tree, to which late ones come.
type lateStream struct {
	perspective
	env    *env
	tree   string
	events int
	late   int // events that came
}

const loneStream = "stream-0"

func (e *env) newLateStream(ctx context.Context, events int, apply string) (*lateStream, error) {
	tree, err := e.newLog(ctx, logShape{events: events, perStream: events})
	if err != nil {
		return nil, err
	}
	s := &lateStream{env: e, tree: tree, events: events}
	if s.perspective, err = e.newPerspective(ctx, tree, apply, "{}"); err != nil {
		return nil, err
	}
	e.doing(fmt.Sprintf("folding a stream of %d events", events))
	_, err = e.applyAll(ctx, s.perspective)
	return s, err
}

// comeLate appends an event that is late by lateBy.
func (s *lateStream) comeLate(ctx context.Context) error { return s.comeLateBy(ctx, lateBy) }

func (s *lateStream) comeLateBy(ctx context.Context, depth int) error {
	s.late++
	return s.env.exec(ctx, `select bench.append_to_stream($1, $2, array[bench.event_id($3, $4)])`, s.tree, loneStream, s.events-depth, s.late)
}

// requestReplay makes the stream one to be folded again from its beginning.
func (s *lateStream) requestReplay(ctx context.Context) error {
	return s.env.exec(ctx, `select rewind.request_perspective_rewind($1, $2)`, s.name, loneStream)
}

// repair brings the model up to date and returns how long that took.
func (s *lateStream) repair(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	err := s.env.exec(ctx, `call rewind.catch_up($1)`, s.name)
	return time.Since(begin), err
}

// repairTime measures the median time of repairs after so many late events, in milliseconds.
func (s *lateStream) repairTime(repairs int, owe func(ctx context.Context) error) measurement {
	return func(ctx context.Context) (float64, error) {
		times := make(series, repairs)
		for i := range times {
			if err := owe(ctx); err != nil {
				return 0, err
			}
			took, err := s.repair(ctx)
			if err != nil {
				return 0, err
			}
			times[i] = milliseconds(took)
		}
		return times.median(), nil
	}
}

// repairFolds measures how many events a repair folds.
func (s *lateStream) repairFolds(owe func(ctx context.Context) error) measurement {
	return func(ctx context.Context) (float64, error) {
		before, err := s.env.folds(ctx)
		if err != nil {
			return 0, err
		}
		if err := owe(ctx); err != nil {
			return 0, err
		}
		if _, err := s.repair(ctx); err != nil {
			return 0, err
		}
		after, err := s.env.folds(ctx)
		return float64(after - before), err
	}
}

// folds is how often bench.count_and_sum_up was called.
func (e *env) folds(ctx context.Context) (n int64, err error) {
	err = e.pool.QueryRow(ctx, `select last_value + is_called::int from bench.folds`).Scan(&n)
	return n, err
}

// rewindDepth compares a late event in a long stream with one in a short stream, repaired in its batch and by the rewind path, and measures
// events that come into the long one later and later.
func rewindDepth(ctx context.Context, e *env) ([]Result, error) {
	long, err := e.newLateStream(ctx, e.scale.longStream, "bench.sum_up")
	if err != nil {
		return nil, err
	}
	short, err := e.newLateStream(ctx, e.scale.shortStream, "bench.sum_up")
	if err != nil {
		return nil, err
	}
	against := fmt.Sprintf("in a stream of %d, not %d", e.scale.shortStream, e.scale.longStream)
	var results []Result
	for _, path := range []struct{ name, options string }{
		{"rewind_depth", `{}`},
		{"rewind_depth_locked", `{"inline_rewind_events": 0}`},
	} {
		for _, s := range []*lateStream{long, short} {
			if err := e.exec(ctx, `select rewind.set_options($1, $2)`, path.options, s.name); err != nil {
				return nil, err
			}
		}
		values, baselines, err := e.compare(ctx, e.scale.rounds,
			long.repairTime(e.scale.repetitions, long.comeLate), short.repairTime(e.scale.repetitions, short.comeLate))
		if err != nil {
			return nil, err
		}
		results = append(results, beside(path.name, "ms", against, values, baselines))
	}
	deeper, err := long.compareDepths(ctx)
	return append(results, deeper...), err
}

// depths are shares of its stream by which an event is late: of 1,000,000 events, 10 to 100,000.
var depths = []struct {
	name  string
	share int
}{{"rewind_100000th", 100_000}, {"rewind_10000th", 10_000}, {"rewind_1000th", 1000}, {"rewind_100th", 100}, {"rewind_10th", 10}}

func rewindDepths() []string {
	names := []string{"rewind_depth", "rewind_depth_locked"}
	for _, d := range depths {
		names = append(names, d.name)
	}
	return names
}

// compareDepths compares repairs, by whichever path, with a replay of the whole stream.
func (s *lateStream) compareDepths(ctx context.Context) ([]Result, error) {
	if err := s.env.exec(ctx, `select rewind.set_options('{"inline_rewind_events": null}', $1)`, s.name); err != nil {
		return nil, err
	}
	full, err := s.repairTime(1, s.requestReplay)(ctx)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, d := range depths {
		s.env.doing("late by " + d.name)
		late := s.repairTime(1, func(ctx context.Context) error { return s.comeLateBy(ctx, max(s.events/d.share, 1)) })
		values, baselines := make(series, s.env.scale.rounds), make(series, s.env.scale.rounds)
		for i := range values {
			if values[i], err = late(ctx); err != nil {
				return nil, err
			}
			baselines[i] = full
		}
		results = append(results, beside(d.name, "ms", fmt.Sprintf("full replay of %d", s.events), values, baselines))
	}
	return results, nil
}

// rewindFull compares a late event with folding its stream again from the beginning, by events folded and by time.
func rewindFull(ctx context.Context, e *env) ([]Result, error) {
	counted, err := e.newLateStream(ctx, e.scale.fullStream, "bench.count_and_sum_up")
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.longRounds,
		counted.repairFolds(counted.comeLate), counted.repairFolds(counted.requestReplay))
	if err != nil {
		return nil, err
	}
	folded := beside("rewind_full", "events folded", "full replay", values, baselines)

	timed, err := e.newLateStream(ctx, e.scale.wallStream, "bench.sum_up")
	if err != nil {
		return nil, err
	}
	values, baselines, err = e.compare(ctx, e.scale.longRounds,
		timed.repairTime(1, timed.comeLate), timed.repairTime(1, timed.requestReplay))
	if err != nil {
		return nil, err
	}
	return []Result{folded, beside("rewind_full_wall", "ms", fmt.Sprintf("full replay of %d", e.scale.wallStream), values, baselines)}, nil
}
