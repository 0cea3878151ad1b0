package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rewindpg/rewind"
)

type feedCmd struct {
	Tail      feedTailCmd      `cmd:"" help:"Print the records of a tree in the order in which they arrived."`
	Cursor    feedCursorCmd    `cmd:"" help:"Print the cursor of a place in the feed of a tree."`
	Trim      feedTrimCmd      `cmd:"" help:"Delete the oldest records of a tree that no perspective reads."`
	Consumers feedConsumersCmd `cmd:"" help:"List the durable readers of feeds."`
}

// findPlace returns the cursor that people mean by a word, a time or a cursor.
func findPlace(ctx context.Context, db rewind.DBTX, tree, place string) (at rewind.Cursor, err error) {
	switch place {
	case "now":
		return rewind.CurrentCursor(ctx, db, tree)
	case "start":
		return rewind.Initial, nil
	case "oldest":
		return rewind.OldestCursor(ctx, db, tree)
	}
	if strings.HasPrefix(strings.TrimSpace(place), "{") {
		if err := at.UnmarshalText([]byte(place)); err != nil {
			return at, usageError{err}
		}
		return at, nil
	}
	t, err := time.Parse(time.RFC3339, place)
	if err != nil {
		return at, usageError{fmt.Errorf("%q is not now, start or oldest, and neither a cursor nor a time such as 2026-01-31T12:00:00Z", place)}
	}
	return rewind.CursorAt(ctx, db, tree, t)
}

type feedTailCmd struct {
	Tree   string   `arg:"" help:"Tree to read."`
	From   string   `default:"start" placeholder:"PLACE" help:"Where to begin: now, start, oldest (what was not trimmed), a cursor, or a time (${default})."`
	Follow bool     `short:"f" help:"Go on with records to come, until interrupted."`
	Types  []string `help:"Only events of these types." placeholder:"TYPE"`
	JSON   bool     `name:"json" help:"Print JSON, one object per record."`
}

func (c *feedTailCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	at, err := findPlace(ctx, pool, c.Tree, c.From)
	if err != nil {
		return err
	}
	var opts []rewind.Option
	if c.Types != nil {
		opts = append(opts, rewind.EventTypes(c.Types...))
	}
	read := rewind.Subscribe
	if c.Follow {
		read = rewind.Follow
	}
	var last rewind.Record
	n := int64(0)
	for r, err := range read(ctx, pool, c.Tree, at, opts...) {
		if c.Follow && errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			return err
		}
		if err := c.print(g, r); err != nil {
			return err
		}
		last, n = r, n+1
	}
	if n > 0 {
		at = last.Cursor()
	}
	g.note("%s; go on with --from '%v'", count(n, "record"), at)
	return nil
}

func (c *feedTailCmd) print(g *globals, r rewind.Record) error {
	r.AppendedAt = r.AppendedAt.UTC()
	if c.JSON {
		return g.printJSON(r)
	}
	what := r.Type
	if r.Kind != rewind.KindEvent {
		what = fmt.Sprintf("(kind %d)", r.Kind)
	}
	_, err := fmt.Fprintf(g.stdout, "%s  %d:%d  %s  %s  %s\n", r.AppendedAt.Format(time.RFC3339Nano), r.Partition, r.Offset, r.StreamKey, what, r.Payload)
	return err
}

type feedCursorCmd struct {
	Tree string `arg:"" help:"Tree to look at."`
	At   string `default:"now" placeholder:"PLACE" help:"now, start, oldest (what was not trimmed), or a time (${default})."`
}

func (c *feedCursorCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	at, err := findPlace(ctx, pool, c.Tree, c.At)
	if err != nil {
		return err
	}
	return g.printJSON(at)
}

type feedTrimCmd struct {
	Tree   string `arg:"" help:"Tree to trim."`
	Before string `required:"" placeholder:"PLACE" help:"What lies before goes: now, a cursor, or a time."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

func (c *feedTrimCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	before, err := findPlace(ctx, pool, c.Tree, c.Before)
	if err != nil {
		return err
	}
	all := rewind.Trimmed{HeldBy: []string{}, LeftBehind: []string{}, Left: 1}
	for all.Left > 0 {
		part, err := rewind.TrimTree(ctx, pool, c.Tree, before)
		if err != nil {
			return err
		}
		all.Deleted, all.Left = all.Deleted+part.Deleted, part.Left
		all.HeldBy, all.LeftBehind = append(all.HeldBy[:0], part.HeldBy...), append(all.LeftBehind[:0], part.LeftBehind...)
	}
	if c.JSON {
		return g.printJSON(all)
	}
	if len(all.HeldBy) > 0 {
		g.note("kept what these consumers have before them: %s", strings.Join(all.HeldBy, ", "))
	}
	if len(all.LeftBehind) > 0 {
		g.note("these consumers have lost records, their lease has ended: %s", strings.Join(all.LeftBehind, ", "))
	}
	_, err = fmt.Fprintf(g.stdout, "done: %s deleted\n", count(all.Deleted, "record"))
	return err
}

type feedConsumersCmd struct {
	JSON bool `name:"json" help:"Print JSON, one object per consumer."`
}

type consumerStatus struct {
	ConsumerName string          `json:"consumer_name"`
	TreeName     string          `json:"tree_name"`
	Owner        *string         `json:"owner"`
	ExpiresAt    time.Time       `json:"expires_at"`
	AdvancedAt   *time.Time      `json:"advanced_at"`
	Live         bool            `json:"live"`
	LagRecords   int64           `json:"lag_records"`
	LeftBehind   bool            `json:"left_behind"`
	Cursor       json.RawMessage `json:"cursor"`
}

// A consumer's lag is all that is before it, in its cursor's generation and later ones.
const consumerStatusQuery = `
select c.consumer_name, t.tree_name, c.owner, c.expires_at at time zone 'UTC', c.advanced_at at time zone 'UTC', c.expires_at > rewind._now(),
  lag.records, lag.left_behind, c.cursor
from rewind.feed_consumers c
join rewind.trees t on t.tree_id = c.tree_id
cross join lateral (
  select coalesce(sum(greatest(p.next_offset - o.wal_offset, 0)), 0)::bigint as records, coalesce(bool_or(o.wal_offset < p.floor_offset), false) as left_behind
  from rewind.partitions p
  cross join lateral (
    select case when p.generation = g.generation then coalesce((c.cursor #>> array['offsets', p.wal_partition::text])::bigint, 0) else 0 end as wal_offset
    from (select coalesce((c.cursor ->> 'generation')::int, 1) as generation) g
    where p.generation >= g.generation
  ) o
  where p.tree_id = c.tree_id
) lag
order by c.consumer_name`

func (c *feedConsumersCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	consumers, err := queryRows[consumerStatus](ctx, pool, consumerStatusQuery)
	if err != nil {
		return err
	}
	if c.JSON {
		return printLines(g, consumers)
	}
	return printConsumers(g, consumers)
}

func printConsumers(g *globals, consumers []consumerStatus) error {
	if len(consumers) == 0 {
		_, err := fmt.Fprintln(g.stdout, "no consumers")
		return err
	}
	t := newTable(g.stdout, "consumer", "tree", "lag", "owner", "")
	for _, c := range consumers {
		owner, state := "", "lease ended "+timeText(c.ExpiresAt)
		if c.Owner != nil {
			owner = *c.Owner
		}
		if c.Live {
			state = "lease until " + timeText(c.ExpiresAt)
		}
		if c.LeftBehind {
			state = "lost records: its lease had ended when they were trimmed"
		}
		t.AppendRow([]any{c.ConsumerName, c.TreeName, c.LagRecords, owner, state})
	}
	t.Render()
	return nil
}
