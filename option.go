package rewind

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
	filter          feedFilter
	maxPoll         time.Duration
	wake            <-chan struct{}
	lease           time.Duration
}

// feedFilter is what a reader of the feed asks for.
type feedFilter struct {
	EventTypes   []string `json:"event_types,omitzero"`
	Kinds        []Kind   `json:"kinds,omitzero"`
	KeyPrefix    string   `json:"key_prefix,omitempty"`
	Origin       Origin   `json:"origin,omitempty"`
	withoutLocal bool
}

// inSQL returns the filter that the SQL functions take.
func (f feedFilter) inSQL() json.RawMessage {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}

// filterOptions are the names of the options that make a filter.
var filterOptions = []string{"EventTypes", "Kinds", "KeyPrefix", "FromOrigin", "ExcludeLocalOrigin"}

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

// EventTypes makes the feed yield only events of these types, of none: no events.
func EventTypes(types ...string) Option {
	return Option{"EventTypes", func(o *options) { o.filter.EventTypes = append([]string{}, types...) }}
}

// Kinds makes the feed yield only records of these kinds, of none: nothing.
func Kinds(kinds ...Kind) Option {
	return Option{"Kinds", func(o *options) { o.filter.Kinds = append([]Kind{}, kinds...) }}
}

// KeyPrefix makes the feed yield only records of streams whose key starts with a prefix.
func KeyPrefix(prefix string) Option {
	return Option{"KeyPrefix", func(o *options) { o.filter.KeyPrefix = prefix }}
}

// FromOrigin makes the feed yield the records of an [Origin]; without it, those that were authored here.
func FromOrigin(origin Origin) Option {
	return Option{"FromOrigin", func(o *options) { o.filter.Origin = origin }}
}

// ExcludeLocalOrigin takes out of the feed what was authored here. Nothing is left then, unless [FromOrigin] asks for others.
func ExcludeLocalOrigin() Option {
	return Option{"ExcludeLocalOrigin", func(o *options) { o.filter.withoutLocal = true }}
}

// MaxPoll is how long [Follow] waits at most before it looks again; without it, a second.
func MaxPoll(d time.Duration) Option {
	return Option{"MaxPoll", func(o *options) { o.maxPoll = d }}
}

// WakeOn makes [Follow] look again whenever something is received.
func WakeOn(wake <-chan struct{}) Option {
	return Option{"WakeOn", func(o *options) { o.wake = wake }}
}

func collect(opts []Option, taken ...string) (options, error) {
	var o options
	for _, opt := range opts {
		if !slices.Contains(taken, opt.name) {
			return o, fmt.Errorf("rewind: option %s has no meaning here", opt.name)
		}
		opt.set(&o)
	}
	return o, checkNames("tenant", o.tenant)
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
