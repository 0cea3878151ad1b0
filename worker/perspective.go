package worker

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/google/uuid"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/fold"
)

// Perspective is a read model that folds in Go: one model of type M for each stream of a tree, made of its events in chronology.
//
// Models are kept as JSON, and decoded and encoded again between any two events, as batches happen to end. Nothing that JSON loses may
// matter to the fold: fields that aren't exported, the difference between nil and empty, numbers beyond 2^53 in an interface.
type Perspective[M any] struct {
	// Name of the perspective, by which the view of its models in schema lens is named.
	Name string
	// Tree whose events are folded.
	Tree string
	// EventTypes that matter. Default: all.
	EventTypes []string
	// Version of the fold: grows when Apply changes what it makes of events. A worker folds its own version alone. Default: 1.
	Version int
	// Initial returns the model of a stream without events. Default: the zero value.
	Initial func() M
	// Apply returns the model after an event. It depends on its arguments alone, since it is called again whenever events came late.
	// The model is Apply's to change. [rewind.ErrNoModel], or a model that is null in JSON, means that the stream has no model; its next
	// event starts from Initial. Any other error, or a panic, halts the stream until a retry succeeds.
	Apply func(M, rewind.Event) (M, error)
	// Options of the perspective, as rewind.set_options takes them.
	Options map[string]any
}

// Register adds a perspective to those that the worker folds. Call it before the worker runs, which then creates the perspective in the
// database if it isn't there.
func Register[M any](w *Worker, p Perspective[M]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Version == 0 {
		p.Version = 1
	}
	_, registered := w.perspectives[p.Name]
	switch {
	case w.running:
		return fmt.Errorf("register perspective %q: the worker is running", p.Name)
	case p.Name == "" || p.Tree == "" || p.Apply == nil:
		return fmt.Errorf("register perspective %q: name, tree and Apply are needed", p.Name)
	case p.Version < 0:
		return fmt.Errorf("register perspective %q: version %d is not positive", p.Name, p.Version)
	case registered:
		return fmt.Errorf("register perspective %q: it is registered already", p.Name)
	}
	options := []byte("{}")
	if p.Options != nil {
		var err error
		if options, err = json.Marshal(p.Options); err != nil {
			return fmt.Errorf("register perspective %q: encode the options: %w", p.Name, err)
		}
	}
	w.perspectives[p.Name] = goPerspective{
		tree:       p.Tree,
		eventTypes: p.EventTypes,
		version:    p.Version,
		options:    options,
		newFold:    func() fold.Fold { return fold.New(p.Initial, p.Apply) },
	}
	return nil
}

// goPerspective is a registered perspective.
type goPerspective struct {
	tree       string
	eventTypes []string
	version    int
	options    json.RawMessage
	newFold    func() fold.Fold
}

// streamEvent is an event to fold; a skipped one counts, but isn't folded.
type streamEvent struct {
	rewind.Event
	skipped     bool
	snapshotDue bool // the model after it is wanted
}

// folded is what folding events brought: the model after the last one, and the models after those that wanted them, by index.
type folded struct {
	model     json.RawMessage
	snapshots map[int]json.RawMessage
}

// foldError is a failure of a fold at an event.
type foldError struct {
	message string
	eventID uuid.UUID
	stack   string // of a panic
}

// storable is a message as the database takes text: UTF-8, without NUL.
func storable(message string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", "\uFFFD"), "\uFFFD")
}

// foldEvents folds events of one stream on top of a model. A panic is a failure of that stream, and ends nobody else's work.
func (p goPerspective) foldEvents(model json.RawMessage, events []streamEvent) (result folded, failed *foldError) {
	eventID := events[0].ID
	defer func() {
		if v := recover(); v != nil {
			failed = &foldError{storable(fmt.Sprintf("panic: %v", v)), eventID, string(debug.Stack())}
		}
	}()
	fail := func(doing string, err error) (folded, *foldError) {
		return folded{}, &foldError{message: storable(doing + err.Error()), eventID: eventID}
	}
	f := p.newFold()
	if err := f.Restore(model); err != nil {
		return fail("decode the model: ", err)
	}
	result.snapshots = map[int]json.RawMessage{}
	for i, event := range events {
		eventID = event.ID
		if !event.skipped {
			if err := f.Next(event.Event); err != nil {
				return fail("", err)
			}
		}
		if event.snapshotDue || i == len(events)-1 {
			model, err := f.Model()
			if err != nil {
				return fail("encode the model: ", err)
			}
			result.model = model
			if event.snapshotDue {
				result.snapshots[i] = model
			}
		}
	}
	return result, nil
}

// newEvent is what a fold sees of an event.
func newEvent(streamID uuid.UUID, streamKey, tenantID string, eventID uuid.UUID, eventType string, payload, metadata json.RawMessage) rewind.Event {
	return rewind.Event{
		StreamID: streamID, StreamKey: streamKey, TenantID: tenantID, ID: eventID, Type: eventType,
		OccurredAt: rewind.EventTime(eventID), Payload: payload, Metadata: metadata,
	}
}
