// Package fold folds the events of a stream into a model in Go.
package fold

import (
	"encoding/json"
	"errors"

	"github.com/rewindpg/rewind"
)

// Fold of one stream. Models go in and out as JSON; nil if there is none.
type Fold interface {
	Restore(model json.RawMessage) error
	Next(event rewind.Event) error
	Model() (json.RawMessage, error)
}

// New returns a fold of models of type M: initial returns the one to start from (nil: the zero value), apply the one after an event.
func New[M any](initial func() M, apply func(M, rewind.Event) (M, error)) Fold {
	return &typed[M]{initial: initial, apply: apply}
}

type typed[M any] struct {
	initial func() M
	apply   func(M, rewind.Event) (M, error)

	state  M
	exists bool
}

func (f *typed[M]) Restore(model json.RawMessage) error {
	if isNull(model) {
		return nil
	}
	f.exists = true
	return json.Unmarshal(model, &f.state)
}

func (f *typed[M]) Next(event rewind.Event) error {
	if !f.exists {
		var zero M
		f.state = zero
		if f.initial != nil {
			f.state = f.initial()
		}
	}
	state, err := f.apply(f.state, event)
	if errors.Is(err, rewind.ErrNoModel) {
		f.exists = false
		return nil
	}
	f.state, f.exists = state, true
	return err
}

func (f *typed[M]) Model() (json.RawMessage, error) {
	if !f.exists {
		return nil, nil
	}
	model, err := json.Marshal(f.state)
	if isNull(model) {
		return nil, err
	}
	return model, err
}

func isNull(model json.RawMessage) bool { return len(model) == 0 || string(model) == "null" }
