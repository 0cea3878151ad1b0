package rewind

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// An Option refines a call. Each says which functions take it; the others refuse it.
type Option struct {
	name string
	set  func(*options)
}

type options struct {
	tenant          string
	expectedVersion *int64
	arrival         bool
	afterEvent      *uuid.UUID
	afterVersion    *int64
}

// Tenant says whose stream is meant; without it, that of no tenant. All functions that name streams take it.
func Tenant(id string) Option {
	return Option{"Tenant", func(o *options) { o.tenant = id }}
}

// ExpectedVersion makes [Append] store new events only if the stream is at this version; 0 means that it must be empty.
func ExpectedVersion(version int64) Option {
	return Option{"ExpectedVersion", func(o *options) { o.expectedVersion = &version }}
}

// ByArrival makes [ReadStream] yield records in the order in which they arrived.
func ByArrival() Option {
	return Option{"ByArrival", func(o *options) { o.arrival = true }}
}

// AfterEvent makes [ReadStream] yield only what happened after this event. It doesn't go with the order of arrival.
func AfterEvent(id uuid.UUID) Option {
	return Option{"AfterEvent", func(o *options) { o.afterEvent = &id }}
}

// AfterVersion makes [ReadStream] yield what arrived after this version of the stream, in the order in which it arrived.
func AfterVersion(version int64) Option {
	return Option{"AfterVersion", func(o *options) { o.arrival, o.afterVersion = true, &version }}
}

func collect(opts []Option, taken ...string) (options, error) {
	var o options
	for _, opt := range opts {
		if !slices.Contains(taken, opt.name) {
			return o, fmt.Errorf("rewind: option %s has no meaning here", opt.name)
		}
		opt.set(&o)
	}
	return o, nil
}

// inSQL returns the options that the SQL functions take as JSON.
func (o options) inSQL() json.RawMessage {
	if o.tenant == "" {
		return json.RawMessage(`{}`)
	}
	text, err := json.Marshal(map[string]string{"tenant_id": o.tenant})
	if err != nil {
		panic(err) // a map of strings
	}
	return text
}
