package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Result is one figure beside its baseline. Value, Baseline and Ratio are medians over the rounds, each of its own: that of the ratio is
// not the ratio of the others.
type Result struct {
	Name string `json:"name"`
	// Ratio of value to baseline; nil if there is no baseline.
	Ratio    *float64 `json:"ratio"`
	Value    float64  `json:"value"`
	Unit     string   `json:"unit"`
	Baseline *float64 `json:"baseline"`
	Rounds   int      `json:"rounds"`
	// By round.
	Ratios    []float64 `json:"ratios,omitempty"`
	Values    []float64 `json:"values"`
	Baselines []float64 `json:"baselines,omitempty"`
	// Against says in words what the baseline is.
	Against string `json:"against,omitempty"`
}

// series are figures of one kind, by round.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quantile is the least figure that a share of all doesn't exceed.
func (s series) quantile(share float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// alone is a result without a baseline.
func alone(name, unit string, values series) Result {
	return Result{Name: name, Value: values.median(), Unit: unit, Rounds: len(values), Values: values}
}

// beside is a result with its baseline.
func beside(name, unit, against string, values, baselines series) Result {
	r := alone(name, unit, values)
	ratios := make(series, len(values))
	for i := range values {
		ratios[i] = values[i] / baselines[i]
	}
	ratio, baseline := ratios.median(), baselines.median()
	r.Ratio, r.Ratios, r.Baseline, r.Baselines, r.Against = &ratio, ratios, &baseline, baselines, against
	return r
}

// measurement takes a figure.
type measurement func(ctx context.Context) (float64, error)

// compare takes the figures of a thing and of its baseline in turns. Which is first changes from round to round, so that neither has the
// warmer caches or the smaller tables.
func (e *env) compare(ctx context.Context, rounds int, thing, baseline measurement) (values, baselines series, err error) {
	values, baselines = make(series, rounds), make(series, rounds)
	for i := range rounds {
		e.doing(fmt.Sprintf("round %d of %d", i+1, rounds))
		turns := []struct {
			measurement
			figures series
		}{{thing, values}, {baseline, baselines}}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, t := range turns {
			if t.figures[i], err = t.measurement(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	return values, baselines, nil
}

// typical measures the median time of something that is done some times, in milliseconds.
func (e *env) typical(do func(ctx context.Context) error) measurement {
	return func(ctx context.Context) (float64, error) {
		times := make(series, e.scale.repetitions)
		for i := range times {
			begin := time.Now()
			if err := do(ctx); err != nil {
				return 0, err
			}
			times[i] = milliseconds(time.Since(begin))
		}
		return times.median(), nil
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
