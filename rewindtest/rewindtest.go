// Package rewindtest tests folds: events of a stream go in, its model comes out, and is the same in whatever order the events arrive and
// wherever batches end.
package rewindtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/fold"
	"github.com/rewindpg/rewind/worker"
)

const (
	allOrders  = 6   // up to so many events all orders are tried
	someOrders = 200 // of more
)

// Fold folds events of one stream, in the order in which they happened, and returns the model; exists is false if there is none. An event
// without an ID or a Time happened a millisecond after the one before it.
//
// The test fails if Apply fails, or if the model is another one when the events arrive in another order or in batches of another size: with
// up to six events all orders are tried, else 200, the same every time. That happens when Apply depends on anything but its arguments, or on
// what a model loses as JSON, in which form it is kept between batches.
func Fold[M any](t testing.TB, p worker.Perspective[M], events ...rewind.NewEvent) (model M, exists bool) {
	t.Helper()
	happened := inOrder(t, events, p.EventTypes)
	f := folder(func() fold.Fold { return fold.New(p.Initial, p.Apply) })
	want, err := f.fold(nil, happened)
	if err != nil {
		t.Fatal(err)
	}
	for order := range orders(len(happened)) {
		for _, size := range sizes(len(happened)) {
			got, err := f.arrive(happened, order, size)
			if err == nil && !equal(got, want) {
				err = fmt.Errorf("the model is %s, want %s", orNone(got), orNone(want))
			}
			if err != nil {
				t.Fatalf("events that arrive as %s in batches of %d: %v", places(order), size, err)
			}
		}
	}
	if want == nil {
		return model, false
	}
	if err := json.Unmarshal(want, &model); err != nil {
		t.Fatalf("decode the model %s: %v", want, err)
	}
	return model, true
}

// folder makes folds.
type folder func() fold.Fold

// fold folds events on top of a model.
func (f folder) fold(model json.RawMessage, events []rewind.Event) (json.RawMessage, error) {
	one := f()
	if err := one.Restore(model); err != nil {
		return nil, fmt.Errorf("decode the model %s: %w", model, err)
	}
	for i, event := range events {
		if err := one.Next(event); err != nil {
			return nil, fmt.Errorf("apply event %d, %s: %w", i+1, event.Type, err)
		}
	}
	model, err := one.Model()
	if err != nil {
		return nil, fmt.Errorf("encode the model: %w", err)
	}
	return model, nil
}

// snapshot is a model, and how many events in chronology are in it.
type snapshot struct {
	events int
	model  json.RawMessage
}

// arrive does what a worker does with events that arrive in an order, in batches: folds on, or again from the nearest snapshot before what
// was late. Every batch leaves a snapshot.
func (f folder) arrive(happened []rewind.Event, order []int, size int) (json.RawMessage, error) {
	var known []int // in chronology
	snapshots := []snapshot{{}}
	for batch := range slices.Chunk(order, size) {
		known = append(known, batch...)
		slices.Sort(known)
		first := slices.Index(known, slices.Min(batch))
		for snapshots[len(snapshots)-1].events > first {
			snapshots = snapshots[:len(snapshots)-1]
		}
		from := snapshots[len(snapshots)-1]
		rest := make([]rewind.Event, 0, len(known)-from.events)
		for _, i := range known[from.events:] {
			rest = append(rest, happened[i])
		}
		model, err := f.fold(from.model, rest)
		if err != nil {
			return nil, err
		}
		snapshots = append(snapshots, snapshot{len(known), model})
	}
	return snapshots[len(snapshots)-1].model, nil
}

// inOrder is what a fold sees of events, in the order in which they happened, without those of other types.
func inOrder(t testing.TB, events []rewind.NewEvent, types []string) []rewind.Event {
	t.Helper()
	happened := withIDs(t, events)
	inChronology(happened)
	var all []rewind.Event
	for _, e := range happened {
		if types != nil && !slices.Contains(types, e.Type) {
			continue
		}
		event := rewind.Event{StreamKey: streamKey, ID: e.ID, Type: e.Type, OccurredAt: rewind.EventTime(e.ID)}
		event.Payload, event.Metadata = encode(t, e.Payload), encode(t, e.Metadata)
		all = append(all, event)
	}
	return all
}

func inChronology(events []rewind.NewEvent) {
	slices.SortFunc(events, func(a, b rewind.NewEvent) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

const streamKey = "stream" // of all events of a test

func encode(t testing.TB, value any) json.RawMessage {
	t.Helper()
	if value == nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withIDs gives events without an ID one of their time, in the order given where times are equal.
func withIDs(t testing.TB, events []rewind.NewEvent) []rewind.NewEvent {
	t.Helper()
	events = slices.Clone(events)
	last := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range events {
		e := &events[i]
		if e.Type == "" {
			t.Fatalf("event %d has no type", i+1)
		}
		if e.ID == uuid.Nil {
			happened := e.Time
			if happened.IsZero() {
				happened = last.Add(time.Millisecond)
			}
			e.ID, e.Time = newID(happened, i), time.Time{}
		}
		last = rewind.EventTime(e.ID)
	}
	return events
}

// newID is a UUIDv7 of a time, and of a number that orders equal times.
func newID(happened time.Time, n int) (id uuid.UUID) {
	ms, fraction := uint64(happened.UnixMilli()), uint64(happened.Nanosecond()%1_000_000)*4096/1_000_000
	binary.BigEndian.PutUint64(id[:8], ms<<16|7<<12|fraction)
	binary.BigEndian.PutUint64(id[8:], 1<<63|uint64(n))
	return id
}

// orders are permutations of n places, the natural one first.
func orders(n int) iter.Seq[[]int] {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return func(yield func([]int) bool) {
		if n <= allOrders {
			permute(order, 0, yield)
			return
		}
		random := rand.New(rand.NewPCG(1, 0))
		for range someOrders {
			if !yield(order) {
				return
			}
			random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
	}
}

// permute yields all orders of what is behind a place.
func permute(order []int, from int, yield func([]int) bool) bool {
	if from >= len(order)-1 {
		return yield(order)
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		more := permute(order, from+1, yield)
		order[from], order[i] = order[i], order[from]
		if !more {
			return false
		}
	}
	return true
}

// sizes are sizes of batches that n events may come in.
func sizes(n int) []int {
	if n <= allOrders {
		all := make([]int, n)
		for i := range all {
			all[i] = i + 1
		}
		return all
	}
	return []int{1, 2, 3, n / 2, n}
}

// equal compares models as jsonb does.
func equal(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return (a == nil) == (b == nil)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func orNone(model json.RawMessage) string {
	if model == nil {
		return "none"
	}
	return string(model)
}

// places are events by where they stand in chronology, from 1 on.
func places(order []int) string {
	texts := make([]string, len(order))
	for i, n := range order {
		texts[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(texts, ", ")
}
