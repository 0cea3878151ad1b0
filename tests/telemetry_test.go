package tests

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rewindpg/rewind/worker"
)

// instruments collect what a worker measures.
type instruments struct {
	reader *metric.ManualReader
	spans  *tracetest.InMemoryExporter
	config worker.Config
}

func newInstruments() instruments {
	reader, spans := metric.NewManualReader(), tracetest.NewInMemoryExporter()
	return instruments{reader, spans, worker.Config{
		MeterProvider:  metric.NewMeterProvider(metric.WithReader(reader)),
		TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans)),
	}}
}

// collect returns the sums of counters, the counts of histograms and the values of gauges, by name and attributes.
func (i instruments) collect(t *testing.T) map[string]float64 {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := i.reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, scope := range collected.ScopeMetrics {
		if scope.Scope.Name != "rewind.perspectives" {
			t.Errorf("meter %q", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Value)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Count)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Count)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					values[m.Name+p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
				}
			default:
				t.Errorf("%s: %T", m.Name, data)
			}
		}
	}
	return values
}

func attributesOf(span tracetest.SpanStub) map[attribute.Key]any {
	found := map[attribute.Key]any{}
	for _, a := range span.Attributes {
		found[a.Key] = a.Value.AsInterface()
	}
	return found
}

func TestTelemetryOfRewinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"snapshot_every_n_events": 10}})
	w.append("s", inOrder(20)...)
	runUntilIdle(t, w, worker.Config{BatchSize: 10})
	w.append("s", testEvent{at: 1, v: 1}) // before any snapshot
	in := newInstruments()
	runUntilIdle(t, w, in.config)
	w.append("s", testEvent{at: 5015, v: 1})
	runUntilIdle(t, w, in.config)
	w.checkSettled()

	values := in.collect(t)
	for name, want := range map[string]float64{
		"rewind.perspective.rewindshas_snapshot=false,path=locked,perspective_name=p": 1,
		"rewind.perspective.rewindshas_snapshot=true,path=locked,perspective_name=p":  1,
		"rewind.perspective.rewind.durationperspective_name=p":                        2,
		"rewind.perspective.rewind.events_replayedperspective_name=p":                 2,
		"rewind.perspective.rewind.events_behindperspective_name=p":                   2,
	} {
		if values[name] != want {
			t.Errorf("%s: %v, want %v", name, values[name], want)
		}
	}
	if t.Failed() {
		t.Log(slices.Sorted(maps.Keys(values)))
	}

	spans := in.spans.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	for i, hasSnapshot := range []bool{false, true} {
		span, found := spans[i], attributesOf(spans[i])
		if span.Name != "Perspective RewindAndRun" || span.Status.Code != codes.Unset {
			t.Errorf("span %q, status %v", span.Name, span.Status)
		}
		source := map[bool]string{false: "full", true: "snapshot"}[hasSnapshot]
		if found["rewind.perspective.name"] != "p" || found["rewind.perspective.rewind.has_snapshot"] != hasSnapshot ||
			found["rewind.perspective.rewind.replay_source"] != source || found["rewind.perspective.rewind.events_replayed"] == nil {
			t.Errorf("span attributes %v", found)
		}
	}
}

func TestTelemetryOfInlineRepairs(t *testing.T) {
	t.Parallel()
	options := map[string]any{"inline_rewind_events": 256, "snapshot_every_n_events": 10}
	w := newWorld(t, worldOptions{options: options})
	in := newInstruments()
	in.config.BatchSize = 10
	k := newWorker(t, w, in.config)
	register(t, k, chainPerspective(options))
	w.append("s", inOrder(20)...)
	settle(t, w, k)
	w.append("s", testEvent{at: 1, v: 1}) // before any snapshot
	settle(t, w, k)
	w.append("s", testEvent{at: 5015, v: 1})
	settle(t, w, k)
	w.checkSettled()
	values := in.collect(t)
	for _, perspective := range []string{"p", "g"} {
		for _, hasSnapshot := range []string{"false", "true"} {
			name := "rewind.perspective.rewindshas_snapshot=" + hasSnapshot + ",path=inline,perspective_name=" + perspective
			if values[name] != 1 {
				t.Errorf("%s: %v, want 1", name, values[name])
			}
		}
	}
}

func TestTelemetryOfFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", inOrder(5)...)
	runUntilIdle(t, w, worker.Config{})
	w.append("s", testEvent{at: 2, v: 1, fail: true})
	in := newInstruments()
	err := newWorker(t, w, in.config).RunUntilIdle(t.Context())
	var failed *worker.FailedStreamsError
	if !errors.As(err, &failed) {
		t.Fatalf("run until idle: %v, want a failed stream", err)
	}
	if n := in.collect(t)["rewind.perspective.errorsperspective_name=p"]; n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
	spans := in.spans.GetSpans()
	if len(spans) != 1 || spans[0].Status.Code != codes.Error || attributesOf(spans[0])["rewind.perspective.rewind.error"] != "event 1 fails" {
		t.Errorf("spans %+v", spans)
	}
}

func TestSpansCanBeOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`select from rewind.set_options('{"spans_enabled": false}')`)
	w.append("s", inOrder(5)...)
	runUntilIdle(t, w, worker.Config{})
	w.append("s", testEvent{at: 2, v: 1})
	in := newInstruments()
	runUntilIdle(t, w, in.config)
	if n := len(in.spans.GetSpans()); n > 0 {
		t.Errorf("%d spans, want none", n)
	}
	w.checkSettled()
}

func TestLagGauges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{options: map[string]any{"debounce_window": "1h", "max_debounce_window": "1h"}})
	w.exec(`select from rewind.set_options('{"startup_scan_enabled": false}')`)
	w.append("s", inOrder(5)...)
	w.apply()
	w.append("s", testEvent{at: 2, v: 1})
	w.apply()
	w.exec(`select from rewind.register_perspective('g', 't')`) // which this worker doesn't know
	in := newInstruments()
	stop := start(t, newWorker(t, w, in.config))
	eventually(t, func() bool { return in.collect(t)["rewind.perspective.flaggedperspective_name=p"] == 1 })
	values := in.collect(t)
	for name, want := range map[string]float64{
		"rewind.perspective.lag.recordsperspective_name=p": 0,
		"rewind.perspective.lag.recordsperspective_name=g": 6,
		"rewind.perspective.parkedperspective_name=p":      0,
	} {
		if got, found := values[name]; got != want || !found {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"rewind.perspective.lag.secondsperspective_name=g", "rewind.perspective.oldest_debtperspective_name=p"} {
		if values[name] <= 0 {
			t.Errorf("%s: %v, want more than 0", name, values[name])
		}
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	if values := in.collect(t); values["rewind.perspective.flaggedperspective_name=p"] != 0 {
		t.Error("a worker that has stopped still observes")
	}
}
