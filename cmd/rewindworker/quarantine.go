package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" help:"List events that are too far in the future or too old for their tree."`
	Release quarantineReleaseCmd `cmd:"" help:"Append events to their streams after all."`
	Drop    quarantineDropCmd    `cmd:"" help:"Keep events out of their streams, for good."`
}

type quarantinedEvent struct {
	QuarantineID  int64           `json:"quarantine_id"`
	TreeName      string          `json:"tree_name"`
	TenantID      string          `json:"tenant_id"`
	StreamKey     string          `json:"stream_key"`
	EventID       string          `json:"event_id"`
	EventType     string          `json:"event_type"`
	Payload       json.RawMessage `json:"payload"`
	Metadata      json.RawMessage `json:"metadata"`
	Reason        string          `json:"reason"`
	Detail        json.RawMessage `json:"detail"`
	HappenedAt    time.Time       `json:"happened_at"`
	QuarantinedAt time.Time       `json:"quarantined_at"`
	State         string          `json:"state"`
	DecidedAt     *time.Time      `json:"decided_at"`
	DropReason    *string         `json:"drop_reason"`
}

const quarantineQuery = `
select q.quarantine_id, t.tree_name, q.tenant_id, q.stream_key, q.event_id::text, q.event_type, q.payload, q.metadata, q.reason, q.detail,
  rewind.event_time(q.event_id) at time zone 'UTC', q.quarantined_at at time zone 'UTC', q.state, q.decided_at at time zone 'UTC', q.drop_reason
from rewind.quarantined_events q
join rewind.trees t on t.tree_id = q.tree_id
where $1 in ('', t.tree_name) and ($2 or q.state = 'held')
order by q.quarantine_id`

type quarantineListCmd struct {
	Tree string `placeholder:"NAME" help:"Events for this tree only."`
	All  bool   `help:"Also those that were released or dropped."`
	JSON bool   `name:"json" help:"Print JSON, one object per event."`
}

func (c *quarantineListCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	events, err := queryRows[quarantinedEvent](ctx, pool, quarantineQuery, c.Tree, c.All)
	if err != nil {
		return err
	}
	if c.JSON {
		return printLines(g, events)
	}
	if len(events) == 0 {
		_, err := fmt.Fprintln(g.stdout, "no events in quarantine")
		return err
	}
	t := newTable(g.stdout, "id", "tree", "stream", "event", "happened", "type", "reason", "state", "payload")
	for _, e := range events {
		var detail struct{ Reason string }
		if err := json.Unmarshal(e.Detail, &detail); err != nil {
			return fmt.Errorf("detail of event %d: %w", e.QuarantineID, err)
		}
		state := e.State
		if e.DropReason != nil {
			state += ": " + *e.DropReason
		}
		t.AppendRow([]any{e.QuarantineID, e.TreeName, e.StreamKey, e.EventID, timeText(e.HappenedAt), e.EventType, e.Reason + " " + detail.Reason,
			shorten(state, 40), shorten(string(e.Payload), 60)})
	}
	t.Render()
	return nil
}

// quarantinedIDs name events as list does: by their ids in the quarantine, or by their own.
type quarantinedIDs []string

// find returns the ids in the quarantine.
func (ids quarantinedIDs) find(ctx context.Context, db querier) ([]int64, error) {
	found := make([]int64, len(ids))
	for i, id := range ids {
		number, err := strconv.ParseInt(id, 10, 64)
		if err == nil {
			found[i] = number
			continue
		}
		eventID, err := uuid.Parse(id)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s is neither an id of quarantine list nor of an event", id)}
		}
		rows, err := queryRows[struct{ ID int64 }](ctx, db, `select quarantine_id from rewind.quarantined_events where event_id = $1`, eventID)
		switch {
		case err != nil:
			return nil, err
		case len(rows) == 0:
			return nil, fmt.Errorf("event %s is not in quarantine", eventID)
		case len(rows) > 1:
			return nil, fmt.Errorf("event %s is in quarantine for %d streams: say which one by the id of quarantine list", eventID, len(rows))
		}
		found[i] = rows[0].ID
	}
	return found, nil
}

type quarantineReleaseCmd struct {
	IDs  quarantinedIDs `arg:"" name:"ID" help:"Events, by the ids that list shows, or by their own."`
	JSON bool           `name:"json" help:"Print JSON, one object per event."`
}

type releasedEvent struct {
	QuarantineID  int64  `json:"quarantine_id"`
	EventID       string `json:"event_id"`
	WalPartition  int    `json:"wal_partition"`
	WalOffset     int64  `json:"wal_offset"`
	StreamVersion int64  `json:"stream_version"`
	HLC           string `json:"hlc"`
	WasNew        bool   `json:"was_new"`
}

// Run releases all events or none.
func (c *quarantineReleaseCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	ids, err := c.IDs.find(ctx, pool)
	if err != nil {
		return err
	}
	var released []releasedEvent
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		released = nil
		for _, id := range ids {
			rows, err := queryRows[releasedEvent](ctx, tx, `
				select $1::bigint, event_id::text, wal_partition, wal_offset, stream_version, hlc::text, was_new
				from rewind.release_quarantined_event(p_quarantine_id => $1)`, id)
			if err != nil {
				return err
			}
			released = append(released, rows...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printLines(g, released)
	}
	added := int64(0)
	for _, e := range released {
		if e.WasNew {
			added++
		}
	}
	_, err = fmt.Fprintf(g.stdout, "done: %s appended, %d there already\n", count(added, "event"), int64(len(released))-added)
	return err
}

type quarantineDropCmd struct {
	IDs    quarantinedIDs `arg:"" name:"ID" help:"Events, by the ids that list shows, or by their own."`
	Reason string         `required:"" placeholder:"TEXT" help:"Why, for the record."`
	JSON   bool           `name:"json" help:"Print JSON."`
}

type dropResult struct {
	Dropped []int64 `json:"dropped"`
}

// Run drops all events or none.
func (c *quarantineDropCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	ids, err := c.IDs.find(ctx, pool)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `select rewind.drop_quarantined_event(p_quarantine_id => i, p_reason => $2) from unnest($1::bigint[]) i`,
		ids, c.Reason)
	if err != nil {
		return err
	}
	if c.JSON {
		return g.printJSON(dropResult{ids})
	}
	_, err = fmt.Fprintf(g.stdout, "done: %s will stay out of the log\n", count(int64(len(ids)), "event"))
	return err
}
