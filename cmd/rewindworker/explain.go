package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

type perspectiveExplainCmd struct {
	streamArgs
	Last int  `placeholder:"N" help:"Only the last N events."`
	JSON bool `name:"json" help:"Print JSON, one object per event."`
}

func (c *perspectiveExplainCmd) Help() string {
	return `Lists the stream's events in the order in which they happened: when each arrived after something that happened later, what it
changed, and what of today's model it was the last to set (marked with *).`
}

type explainedEvent struct {
	Place         int64           `json:"place"`
	EventID       string          `json:"event_id"`
	EventType     string          `json:"event_type"`
	OccurredAt    time.Time       `json:"occurred_at"`
	StreamVersion int64           `json:"stream_version"`
	AppendedAt    time.Time       `json:"appended_at"`
	LateBySeconds *float64        `json:"late_by_seconds"`
	Applied       bool            `json:"applied"`
	Skipped       bool            `json:"skipped"`
	Payload       json.RawMessage `json:"payload"`
	Patch         json.RawMessage `json:"patch"`
	LastSet       []string        `json:"last_set"`
	Model         json.RawMessage `json:"model"`
	Error         *string         `json:"error"`
}

func (c *perspectiveExplainCmd) Run(ctx context.Context, g *globals) error {
	if c.Last < 0 {
		return usageError{fmt.Errorf("--last must be positive, not %d", c.Last)}
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	events, err := queryRows[explainedEvent](ctx, pool, `
		select place, event_id::text, event_type, occurred_at at time zone 'UTC', stream_version, appended_at at time zone 'UTC',
		  extract(epoch from late_by)::double precision, applied, skipped, payload, patch, last_set, model, error
		from rewind.explain_model(p_perspective => $1, p_stream => $2, p_options => $3)
		order by place`, c.Name, c.Stream, tenantOption(c.Tenant))
	if err != nil {
		return err
	}
	if c.Last > 0 {
		events = events[max(0, len(events)-c.Last):]
	}
	if c.JSON {
		return printLines(g, events)
	}
	if len(events) == 0 {
		_, err := fmt.Fprintf(g.stdout, "stream %s has no events that %s folds\n", c.Stream, c.Name)
		return err
	}
	t := newTable(g.stdout, "place", "version", "happened", "event", "late by", "changes")
	for _, e := range events {
		late := ""
		if e.LateBySeconds != nil {
			late = seconds(*e.LateBySeconds)
		}
		t.AppendRow([]any{e.Place, e.StreamVersion, e.OccurredAt.Format(time.RFC3339Nano), e.EventType, late, e.changes()})
	}
	t.Render()
	return nil
}

// changes says in a line what an event did.
func (e explainedEvent) changes() string {
	switch {
	case e.Skipped:
		return "skipped"
	case e.Error != nil:
		return "the fold raises: " + *e.Error
	case e.Patch == nil:
		return ""
	}
	var operations []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
		Old   json.RawMessage `json:"old"`
	}
	if err := json.Unmarshal(e.Patch, &operations); err != nil {
		return string(e.Patch) // shown as it is
	}
	parts := make([]string, len(operations))
	for i, o := range operations {
		parts[i] = fmt.Sprintf("%s: %s → %s", cmp.Or(o.Path, "model"), orNothing(o.Old), orNothing(o.Value))
		stands := slices.ContainsFunc(e.LastSet, func(path string) bool { return path == o.Path || strings.HasPrefix(path, o.Path+"/") })
		if stands {
			parts[i] += " *"
		}
	}
	text := shorten(strings.Join(parts, ", "), 120)
	if !e.Applied {
		text += " (not applied yet)"
	}
	return text
}

func orNothing(value json.RawMessage) string {
	if len(bytes.TrimSpace(value)) == 0 {
		return "nothing"
	}
	return string(value)
}
