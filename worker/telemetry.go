package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	instrumentationName = "rewind.perspectives"
	// observeTimeout keeps a database that doesn't answer from holding up whoever collects.
	observeTimeout = 5 * time.Second
)

// telemetry is what a worker measures.
type telemetry struct {
	tracer         trace.Tracer
	meter          metric.Meter
	rewinds        metric.Int64Counter
	duration       metric.Float64Histogram
	eventsReplayed metric.Int64Histogram
	eventsBehind   metric.Int64Histogram
	errors         metric.Int64Counter
	lagRecords     metric.Int64ObservableGauge
	lagSeconds     metric.Float64ObservableGauge
	flagged        metric.Int64ObservableGauge
	parked         metric.Int64ObservableGauge
	oldestDebt     metric.Float64ObservableGauge
}

func newTelemetry(meters metric.MeterProvider, tracers trace.TracerProvider) (*telemetry, error) {
	t := &telemetry{
		tracer: tracers.Tracer(instrumentationName, trace.WithInstrumentationVersion(moduleVersion())),
		meter:  meters.Meter(instrumentationName, metric.WithInstrumentationVersion(moduleVersion())),
	}
	var err error
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	t.rewinds, e = t.meter.Int64Counter("rewind.perspective.rewinds",
		metric.WithDescription("Attempts to rewind a stream, by whether a snapshot was restored."))
	note(e)
	t.duration, e = t.meter.Float64Histogram("rewind.perspective.rewind.duration", metric.WithUnit("ms"),
		metric.WithDescription("How long a rewind took."))
	note(e)
	t.eventsReplayed, e = t.meter.Int64Histogram("rewind.perspective.rewind.events_replayed",
		metric.WithDescription("Events that a rewind folded after its restore point."))
	note(e)
	t.eventsBehind, e = t.meter.Int64Histogram("rewind.perspective.rewind.events_behind",
		metric.WithDescription("Events that were in the model already and happened after the one that came late."))
	note(e)
	t.errors, e = t.meter.Int64Counter("rewind.perspective.errors", metric.WithDescription("Folds and rewinds that failed."))
	note(e)
	t.lagRecords, e = t.meter.Int64ObservableGauge("rewind.perspective.lag.records", metric.WithDescription("Records not read yet."))
	note(e)
	t.lagSeconds, e = t.meter.Float64ObservableGauge("rewind.perspective.lag.seconds", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest record that was not read yet has been waiting."))
	note(e)
	t.flagged, e = t.meter.Int64ObservableGauge("rewind.perspective.flagged", metric.WithDescription("Streams that wait for a rewind."))
	note(e)
	t.parked, e = t.meter.Int64ObservableGauge("rewind.perspective.parked",
		metric.WithDescription("Failed streams that have no attempt left."))
	note(e)
	t.oldestDebt, e = t.meter.Float64ObservableGauge("rewind.perspective.oldest_debt", metric.WithUnit("s"),
		metric.WithDescription("How long the stream that was flagged first has been waiting for its rewind."))
	note(e)
	if err != nil {
		return nil, fmt.Errorf("create the instruments: %w", err)
	}
	return t, nil
}

func ofPerspective(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("perspective_name", name))
}

func (t *telemetry) countRewinds(ctx context.Context, n int64, perspective string, hasSnapshot bool, path string) {
	if n > 0 {
		t.rewinds.Add(ctx, n, ofPerspective(perspective), metric.WithAttributes(
			attribute.Bool("has_snapshot", hasSnapshot), attribute.String("path", path)))
	}
}

func (t *telemetry) countBatch(ctx context.Context, perspective string, batch db.RewindAppliedBatch) {
	t.countRewinds(ctx, batch.Repaired-batch.Restored, perspective, false, "inline")
	t.countRewinds(ctx, batch.Restored, perspective, true, "inline")
	if batch.Failed > 0 {
		t.errors.Add(ctx, batch.Failed, ofPerspective(perspective))
	}
}

// observe reports how perspectives stand, whenever somebody collects, until the registration is ended.
func (r *runner) observe() (metric.Registration, error) {
	t := r.telemetry
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		rows, err := r.query.ReadLag(ctx, r.pool)
		if err != nil {
			return fmt.Errorf("read the lag of perspectives: %w", err)
		}
		for _, row := range rows {
			of := ofPerspective(row.PerspectiveName)
			o.ObserveInt64(t.lagRecords, row.LagRecords, of)
			o.ObserveFloat64(t.lagSeconds, row.LagSeconds, of)
			o.ObserveInt64(t.flagged, row.Flagged, of)
			o.ObserveInt64(t.parked, row.Parked, of)
			o.ObserveFloat64(t.oldestDebt, row.OldestDebt, of)
		}
		return nil
	}, t.lagRecords, t.lagSeconds, t.flagged, t.parked, t.oldestDebt)
}

// rewindSpan is the span of one rewind.
type rewindSpan struct{ trace.Span }

var noSpan = rewindSpan{noop.Span{}}

// startSpan starts a span that does nothing if spans are off, or if the repair is no rewind.
func (r *runner) startSpan(ctx context.Context, claimed db.RewindClaimedRewind, flagged bool) (context.Context, rewindSpan) {
	if !flagged || !r.options.Load().SpansEnabled {
		return ctx, noSpan
	}
	ctx, span := r.telemetry.tracer.Start(ctx, "Perspective RewindAndRun", trace.WithAttributes(
		attribute.String("rewind.perspective.name", claimed.PerspectiveName),
		attribute.String("rewind.stream.id", claimed.StreamID.String()),
		attribute.String("rewind.perspective.rewind_trigger_event_id", textOf(claimed.TriggerEventID)),
		attribute.Int64("rewind.perspective.rewind.events_behind", claimed.EventsBehind),
	))
	return ctx, rewindSpan{span}
}

// restored says from where the replay starts.
func (s rewindSpan) restored(source string) {
	s.SetAttributes(
		attribute.Bool("rewind.perspective.rewind.has_snapshot", source == sourceSnapshot),
		attribute.String("rewind.perspective.rewind.replay_source", source),
	)
}

func (s rewindSpan) completed(eventsReplayed int64) {
	s.SetAttributes(attribute.Int64("rewind.perspective.rewind.events_replayed", eventsReplayed))
}

func (s rewindSpan) failed(message string) {
	s.SetAttributes(attribute.String("rewind.perspective.rewind.error", message))
	s.SetStatus(codes.Error, message)
}

func textOf(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
