package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// certificate is what a model in one database is made of.
type certificate struct {
	StreamID    string `json:"stream_id"`
	StreamKey   string `json:"stream_key"`
	TenantID    string `json:"tenant_id"`
	Events      int64  `json:"events"`
	Digest      string `json:"digest"`
	Certificate string `json:"certificate"`
}

// certificates reads those of a perspective in order of stream ids, a part at a time.
type certificates struct {
	pool        *pgxpool.Pool
	perspective string

	from string
	page []certificate
	done bool
}

// peek returns the next one; nil at the end.
func (c *certificates) peek(ctx context.Context) (*certificate, error) {
	if len(c.page) == 0 && !c.done {
		options := map[string]any{"max_streams": verifyStreams + 1}
		if c.from != "" {
			options["from_stream_id"] = c.from
		}
		page, err := queryRows[certificate](ctx, c.pool, `
			select stream_id::text, coalesce(stream_key, ''), coalesce(tenant_id, ''), events, digest, certificate
			from rewind.certify_perspective(p_perspective => $1, p_options => $2)`, c.perspective, jsonText(options))
		if err != nil {
			return nil, err
		}
		if c.done = len(page) <= verifyStreams; !c.done {
			c.from = page[verifyStreams].StreamID
			page = page[:verifyStreams]
		}
		c.page = page
	}
	if len(c.page) == 0 {
		return nil, nil
	}
	return &c.page[0], nil
}

// versions returns that of the perspective, none if there is no such perspective.
func (c *certificates) versions(ctx context.Context) ([]int, error) {
	rows, err := c.pool.Query(ctx, `select version from rewind.perspectives where perspective_name = $1`, c.perspective)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func (c *certificates) next() { c.page = c.page[1:] }

// noteVersions tells that no certificates can be equal, if that is so.
func noteVersions(ctx context.Context, g *globals, here, there certificates) error {
	a, err := here.versions(ctx)
	if err != nil {
		return err
	}
	b, err := there.versions(ctx)
	if err != nil {
		return fmt.Errorf("the other database: %w", err)
	}
	if len(a) == 1 && len(b) == 1 && a[0] != b[0] {
		g.note("perspective %s is of version %d here and %d there: models with events differ, whatever they are", here.perspective, a[0], b[0])
	}
	return nil
}

// difference is a stream that two databases don't agree about.
type difference struct {
	PerspectiveName string       `json:"perspective_name"`
	StreamKey       string       `json:"stream_key"`
	TenantID        string       `json:"tenant_id"`
	Problem         string       `json:"problem"`
	Here            *certificate `json:"here"`
	There           *certificate `json:"there"`
}

func newDifference(perspective string, here, there *certificate) difference {
	d := difference{PerspectiveName: perspective, Here: here, There: there}
	named := here
	switch {
	case there == nil:
		d.Problem = "missing there"
	case here == nil:
		d.Problem, named = "missing here", there
	case here.Events != there.Events || here.Digest != there.Digest:
		d.Problem = "other events"
	default:
		d.Problem = "other model"
	}
	d.StreamKey, d.TenantID = named.StreamKey, named.TenantID
	return d
}

// verifyAgainst compares the models of a perspective with those of another database, by their certificates.
func (c *verifyCmd) verifyAgainst(ctx context.Context, g *globals, pool *pgxpool.Pool) error {
	other, err := openPool(ctx, c.Against, 0)
	if err != nil {
		return err
	}
	defer other.Close()
	here := certificates{pool: pool, perspective: c.Perspective}
	there := certificates{pool: other, perspective: c.Perspective}
	if err := noteVersions(ctx, g, here, there); err != nil {
		return err
	}
	t := newTable(g.stdout, "stream", "problem", "events here", "events there")
	var compared, found int64
	for ; ; compared++ {
		a, err := here.peek(ctx)
		if err != nil {
			return err
		}
		b, err := there.peek(ctx)
		if err != nil {
			return fmt.Errorf("the other database: %w", err)
		}
		if a == nil && b == nil {
			break
		}
		if a != nil && b != nil && a.StreamID != b.StreamID { // ids order as their texts do
			if a.StreamID < b.StreamID {
				b = nil
			} else {
				a = nil
			}
		}
		if a == nil || b == nil || a.Certificate != b.Certificate {
			found++
			d := newDifference(c.Perspective, a, b)
			if c.JSON {
				if err := g.printJSON(d); err != nil {
					return err
				}
			} else if found <= verifyShown {
				t.AppendRow([]any{d.StreamKey, d.Problem, a.events(), b.events()})
			}
		}
		if a != nil {
			here.next()
		}
		if b != nil {
			there.next()
		}
	}
	if !c.JSON {
		result := "equal"
		if found > 0 {
			result = count(found, "difference")
		}
		if _, err := fmt.Fprintf(g.stdout, "%s: %s (%s)\n", c.Perspective, result, count(compared, "stream")); err != nil {
			return err
		}
		if found > 0 {
			t.Render()
		}
		if found > verifyShown {
			fmt.Fprintf(g.stdout, "and %d more, which --json lists\n", found-verifyShown)
		}
	}
	if found > 0 {
		return errors.New(count(found, "difference"))
	}
	return nil
}

// events is how many there are, for people.
func (c *certificate) events() any {
	if c == nil {
		return "no model"
	}
	return c.Events
}
