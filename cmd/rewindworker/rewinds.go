package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	followInterval = 500 * time.Millisecond
	// followWindow is how far back a follower looks for rows that became visible after ones with greater ids.
	followWindow = 1000
)

type rewindsCmd struct {
	Limit  int  `default:"20" help:"Number of rewinds, the newest ones (${default})."`
	Follow bool `short:"f" help:"Go on with those to come, until interrupted."`
	JSON   bool `name:"json" help:"Print JSON, one object per rewind."`
}

type rewindRow struct {
	RewindID        int64           `json:"rewind_id"`
	PerspectiveName string          `json:"perspective_name"`
	GenerationID    int             `json:"generation_id"`
	StreamID        string          `json:"stream_id"`
	StreamKey       string          `json:"stream_key"`
	TriggerEventID  *string         `json:"trigger_event_id"`
	SnapshotEventID *string         `json:"snapshot_event_id"`
	ReplaySource    string          `json:"replay_source"`
	EventsReplayed  int64           `json:"events_replayed"`
	EventsFolded    int64           `json:"events_folded"`
	EventsBehind    int64           `json:"events_behind"`
	StartedAt       time.Time       `json:"started_at"`
	CompletedAt     time.Time       `json:"completed_at"`
	Outcome         string          `json:"outcome"`
	Error           *string         `json:"error"`
	Worker          *string         `json:"worker"`
	Patch           json.RawMessage `json:"patch"`
}

const rewindColumns = `
  rewind_id, perspective_name, generation_id, stream_id::text, stream_key, trigger_event_id::text, snapshot_event_id::text, replay_source,
  events_replayed, events_folded, events_behind, started_at at time zone 'UTC', completed_at at time zone 'UTC', outcome, error, worker, patch`

func (c *rewindsCmd) Run(ctx context.Context, g *globals) error {
	if c.Limit < 1 {
		return usageError{errors.New("--limit must be positive")}
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	// All that the window has is known, though only the newest are shown.
	rows, err := queryRows[rewindRow](ctx, pool,
		`select`+rewindColumns+` from rewind.perspective_rewinds order by rewind_id desc limit $1`, max(c.Limit, followWindow))
	if err != nil {
		return err
	}
	slices.Reverse(rows)
	known := map[int64]bool{}
	var newest int64
	for _, r := range rows {
		known[r.RewindID], newest = true, r.RewindID
	}
	if err := c.print(g, rows[max(0, len(rows)-c.Limit):]); err != nil || !c.Follow {
		return err
	}

	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		rows, err := queryRows[rewindRow](ctx, pool,
			`select`+rewindColumns+` from rewind.perspective_rewinds where rewind_id > $1 order by rewind_id`, newest-followWindow)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		rows = slices.DeleteFunc(rows, func(r rewindRow) bool { return known[r.RewindID] })
		for _, r := range rows {
			known[r.RewindID], newest = true, max(newest, r.RewindID)
		}
		for id := range known {
			if id <= newest-followWindow {
				delete(known, id)
			}
		}
		if err := c.print(g, rows); err != nil {
			return err
		}
	}
}

func (c *rewindsCmd) print(g *globals, rows []rewindRow) error {
	if c.JSON {
		return printLines(g, rows)
	}
	if len(rows) == 0 {
		if !c.Follow {
			fmt.Fprintln(g.stdout, "no rewinds (shallow repairs, made where late events are read, are listed if narrate_inline_rewinds is on)")
		}
		return nil
	}
	t := newTable(g.stdout, "completed", "perspective", "stream", "from", "events replayed", "took", "outcome", "changes")
	for _, r := range rows {
		changes := string(r.Patch)
		if r.Error != nil {
			changes = *r.Error
		}
		t.AppendRow([]any{timeText(r.CompletedAt), r.PerspectiveName, r.StreamKey, r.ReplaySource, r.EventsReplayed,
			seconds(r.CompletedAt.Sub(r.StartedAt).Seconds()), r.Outcome, shorten(changes, 80)})
	}
	t.Render()
	return nil
}
