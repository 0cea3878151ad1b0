package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/examples"
)

const (
	trickleInterval = 700 * time.Millisecond
	trickleTimeout  = time.Minute
	trickleOrders   = 3 // under way at once
)

// trickle appends events of orders that nobody knows yet, one in a while, some of them late, until it is interrupted.
func (d *demo) trickle(ctx context.Context) error {
	live := &demo{pool: d.pool, name: "demo_live", out: d.out, color: d.color}
	if err := live.create(ctx, examples.ApplyOrder, "examples.apply_order(jsonb, rewind.event)"); err != nil {
		return err
	}
	if _, err := live.rewindsSince(ctx); err != nil {
		return err
	}
	var before demoResult
	if err := live.countEvents(ctx, &before); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s\n\n", d.paint(bold, "More orders, until you interrupt"))

	afterwards := context.WithoutCancel(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() {
		worked <- live.worker.Run(ctx)
		stop() // nobody would fold any more
	}()
	err := live.appendOrders(ctx, before.Streams)
	if ctx.Err() != nil {
		err = nil
	}
	stop()
	if err := errors.Join(err, <-worked); err != nil {
		return err
	}
	if err := live.worker.RunUntilIdle(afterwards); err != nil { // the last event may not be in its model yet
		return err
	}
	var result demoResult
	if err := live.countEvents(afterwards, &result); err != nil {
		return err
	}
	result.NewEvents, result.Duplicates = result.Events-before.Events, before.Events
	return live.conclude(afterwards, &result)
}

func (d *demo) appendOrders(ctx context.Context, known int64) error {
	ticker := time.NewTicker(trickleInterval)
	defer ticker.Stop()
	var underWay [trickleOrders]order
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		o := &underWay[rand.IntN(trickleOrders)]
		if len(o.events) == 0 {
			known++
			*o = newOrder(known)
		}
		event := o.events[0]
		o.events = o.events[1:]
		if err := d.appendLive(ctx, o.key, event); err != nil {
			return err
		}
	}
}

// appendLive appends an event, waits until it is in the model, and shows what became of that.
func (d *demo) appendLive(ctx context.Context, key string, event rewind.NewEvent) error {
	var id string
	if err := d.pool.QueryRow(ctx, `select rewind.stream_id($1, $2)::text`, d.name, key).Scan(&id); err != nil {
		return err
	}
	before, err := d.models(ctx, []string{id})
	if err != nil {
		return err
	}
	appended, err := rewind.Append(ctx, d.pool, d.name, key, []rewind.NewEvent{event})
	if err != nil {
		return err
	}
	var applied bool
	err = d.pool.QueryRow(ctx, `select rewind.wait_for_perspective($1, jsonb_build_object($2::int::text, $3::bigint), $4)`,
		d.name, appended[0].Partition, appended[0].Offset, trickleTimeout).Scan(&applied)
	if err != nil {
		return err
	}
	if !applied {
		return fmt.Errorf("an event of %s is not in its model after %s", key, trickleTimeout)
	}
	after, err := d.models(ctx, []string{id})
	if err != nil {
		return err
	}
	rewinds, err := d.rewindsSince(ctx)
	if err != nil {
		return err
	}
	s := demoStream{StreamKey: key, EventType: event.Type, EventID: appended[0].EventID.String(), Time: event.Time.UTC()}
	late, rewind := s.EventID < before[id].LastEventID, rewinds[id]
	if late && rewind.RewindID == 0 {
		d.repairs++
	}
	return d.show(ctx, s, late, before[id].Model, after[id].Model, rewind)
}

// order is what is still to come of an order, in order of arrival.
type order struct {
	key    string
	events []rewind.NewEvent
}

// newOrder is an order of the last few minutes. Its events are a minute apart, and neighbours may change places on their way.
func newOrder(n int64) order {
	price := 5 * (1 + rand.IntN(40))
	courses := [][]string{
		{"placed", "paid", "shipped", "delivered"},
		{"placed", "item_added", "paid", "shipped", "delivered"},
		{"placed", "paid", "cancelled", "refunded"},
		{"placed", "cancelled"},
	}
	course := courses[rand.IntN(len(courses))]
	o := order{key: fmt.Sprintf("order-%d", n)}
	placed := time.Now().Add(-time.Duration(len(course)) * time.Minute)
	for i, eventType := range course {
		payload := map[string]map[string]int{"placed": {"total": price}, "item_added": {"price": 5}, "paid": {"amount": price}}[eventType]
		event := rewind.NewEvent{Type: eventType, Time: placed.Add(time.Duration(i) * time.Minute)}
		if payload != nil {
			event.Payload = payload
		}
		o.events = append(o.events, event)
	}
	for i := 2; i < len(o.events); i++ { // the first one is first
		if rand.IntN(3) == 0 {
			o.events[i-1], o.events[i] = o.events[i], o.events[i-1]
		}
	}
	return o
}
