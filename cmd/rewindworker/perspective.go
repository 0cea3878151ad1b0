package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

type perspectiveCmd struct {
	Create         perspectiveCreateCmd         `cmd:"" help:"Create a perspective that folds in SQL."`
	List           perspectiveListCmd           `cmd:"" help:"List perspectives."`
	Drop           perspectiveDropCmd           `cmd:"" help:"Drop a perspective with its models."`
	Pause          perspectivePauseCmd          `cmd:"" help:"Stop folding a perspective."`
	Resume         perspectiveResumeCmd         `cmd:"" help:"Let a paused perspective go on."`
	Rebuild        perspectiveRebuildCmd        `cmd:"" help:"Make all models anew from the log, or those of some streams."`
	Abort          perspectiveAbortCmd          `cmd:"" help:"Abort a rebuild that runs, or drop what a failed one left."`
	Rollback       perspectiveRollbackCmd       `cmd:"" help:"Show the models again that the last blue-green rebuild replaced."`
	DropGeneration perspectiveDropGenerationCmd `cmd:"" help:"Drop models that are kept for a rollback."`
	Reset          perspectiveResetCmd          `cmd:"" help:"Take a stream's model away and build it anew."`
	Rewind         perspectiveRewindCmd         `cmd:"" help:"Ask for a replay of a stream from its beginning; its model stays until then."`
	Retry          perspectiveRetryCmd          `cmd:"" help:"Let a failed stream be tried again at once."`
	Skip           perspectiveSkipCmd           `cmd:"" help:"Leave an event out of a stream's model, for good."`

	Explain perspectiveExplainCmd `cmd:"" help:"Show how a stream's model came to be, event by event."`
	Check   perspectiveCheckCmd   `cmd:"" help:"Look for what makes a fold in SQL unsafe."`
}

type perspectiveCreateCmd struct {
	Name      string            `arg:"" help:"Name; the lens view gets it."`
	Tree      string            `required:"" placeholder:"NAME" help:"Tree whose streams it folds."`
	Apply     string            `required:"" placeholder:"FUNCTION" help:"Apply function, as app.apply_order."`
	EventType []string          `sep:"none" placeholder:"TYPE" help:"Event types that it folds; all without it."`
	Initial   string            `default:"{}" placeholder:"JSON" help:"Model that a fold starts from (${default})."`
	Version   int               `default:"1" help:"Version of the fold (${default})."`
	Option    map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Options of the perspective."`
	JSON      bool              `name:"json" help:"Print JSON."`
}

func (c *perspectiveCreateCmd) Run(ctx context.Context, g *globals) error {
	if !json.Valid([]byte(c.Initial)) {
		return usageError{fmt.Errorf("--initial is no JSON: %s", c.Initial)}
	}
	options := map[string]json.RawMessage{}
	for key, value := range c.Option {
		options[key] = optionValue(value)
	}
	apply := c.Apply
	if !strings.Contains(apply, "(") {
		apply += "(jsonb, rewind.event)"
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, `
		select rewind.create_perspective(p_name => $1, p_tree => $2, p_apply => $3::text::regprocedure, p_event_types => $4::text[],
		  p_initial => $5, p_version => $6, p_options => $7)`,
		c.Name, c.Tree, apply, c.EventType, c.Initial, c.Version, jsonText(options))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42883" && strings.Contains(pgErr.Message, `"`+apply+`"`) {
		return fmt.Errorf("%w: an apply function takes (jsonb, rewind.event) and returns jsonb, and is named with its schema", err)
	}
	if err != nil {
		return err
	}
	rows, err := listPerspectives(ctx, pool, c.Name)
	if err != nil {
		return err
	}
	if c.JSON {
		return printLines(g, rows)
	}
	if rows[0].Version < c.Version {
		_, err = fmt.Fprintf(g.stdout, "done: version %d of perspective %s is built now; version %d is shown until it is whole\n",
			c.Version, c.Name, rows[0].Version)
		return err
	}
	_, err = fmt.Fprintf(g.stdout, "done: perspective %s folds tree %s with %s; read it at lens.%q\n", c.Name, c.Tree, *rows[0].Apply, c.Name)
	return err
}

type perspectiveRow struct {
	PerspectiveName  string          `json:"perspective_name"`
	TreeName         string          `json:"tree_name"`
	EventTypes       []string        `json:"event_types"`
	Apply            *string         `json:"apply"`
	Initial          json.RawMessage `json:"initial"`
	Version          int             `json:"version"`
	Options          json.RawMessage `json:"options"`
	State            string          `json:"state"`
	ActiveGeneration *int            `json:"active_generation"`
	CreatedAt        time.Time       `json:"created_at"`
}

// listPerspectives returns the perspective of a name, or all.
func listPerspectives(ctx context.Context, db querier, name string) ([]perspectiveRow, error) {
	return queryRows[perspectiveRow](ctx, db, `
		select p.perspective_name, t.tree_name, p.event_types, p.apply, p.initial, p.version, p.options, p.state, p.active_generation,
		  p.created_at at time zone 'UTC'
		from rewind.perspectives p
		join rewind.trees t on t.tree_id = p.tree_id
		where $1 in ('', p.perspective_name)
		order by p.perspective_name`, name)
}

type perspectiveListCmd struct {
	JSON bool `name:"json" help:"Print JSON, one object per perspective."`
}

func (c *perspectiveListCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows, err := listPerspectives(ctx, pool, "")
	if err != nil {
		return err
	}
	if c.JSON {
		return printLines(g, rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(g.stdout, "no perspectives")
		return err
	}
	t := newTable(g.stdout, "perspective", "tree", "event types", "folded by", "version", "state", "options")
	for _, p := range rows {
		types, apply := "all", "Go"
		if p.EventTypes != nil {
			types = strings.Join(p.EventTypes, ", ")
		}
		if p.Apply != nil {
			apply = *p.Apply
		}
		t.AppendRow([]any{p.PerspectiveName, p.TreeName, shorten(types, 40), apply, p.Version, p.State, shorten(string(p.Options), 60)})
	}
	t.Render()
	return nil
}

type perspectiveDropCmd struct {
	Name string `arg:"" help:"Perspective."`
}

func (c *perspectiveDropCmd) Run(ctx context.Context, g *globals) error {
	return g.act(ctx, fmt.Sprintf("perspective %s is dropped", c.Name), `select rewind.drop_perspective(p_name => $1)`, c.Name)
}

type perspectivePauseCmd struct {
	Name   string `arg:"" help:"Perspective."`
	NoWait bool   `help:"Don't wait for batches that are under way."`
}

func (c *perspectivePauseCmd) Run(ctx context.Context, g *globals) error {
	return g.act(ctx, fmt.Sprintf("perspective %s is paused", c.Name),
		`select rewind.pause_perspective(p_name => $1, p_options => jsonb_build_object('wait', not $2::boolean))`, c.Name, c.NoWait)
}

type perspectiveResumeCmd struct {
	Name string `arg:"" help:"Perspective."`
}

func (c *perspectiveResumeCmd) Run(ctx context.Context, g *globals) error {
	return g.act(ctx, fmt.Sprintf("perspective %s is active", c.Name), `select rewind.resume_perspective(p_name => $1)`, c.Name)
}

// streamArgs name a stream of a perspective.
type streamArgs struct {
	Name   string `arg:"" help:"Perspective."`
	Stream string `arg:"" help:"Stream key."`
	Tenant string `placeholder:"ID" help:"Tenant of the stream."`
}

func (a streamArgs) act(ctx context.Context, g *globals, what, function string) error {
	return g.act(ctx, fmt.Sprintf("stream %s of perspective %s %s", a.Stream, a.Name, what),
		`select `+function+`(p_perspective => $1, p_stream => $2, p_options => $3)`,
		a.Name, a.Stream, tenantOption(a.Tenant))
}

type perspectiveResetCmd struct{ streamArgs }

func (c *perspectiveResetCmd) Run(ctx context.Context, g *globals) error {
	return c.act(ctx, g, "is at its beginning and will be built anew", "rewind.reset_perspective_cursor")
}

type perspectiveRewindCmd struct{ streamArgs }

func (c *perspectiveRewindCmd) Run(ctx context.Context, g *globals) error {
	return c.act(ctx, g, "will be replayed from its beginning", "rewind.request_perspective_rewind")
}

type perspectiveRetryCmd struct{ streamArgs }

func (c *perspectiveRetryCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	var failed bool
	err = pool.QueryRow(ctx, `
		select bool_or(status & 4 <> 0) from rewind.retry_perspective_stream(p_perspective => $1, p_stream => $2, p_options => $3)`,
		c.Name, c.Stream, tenantOption(c.Tenant)).Scan(&failed)
	if err != nil {
		return err
	}
	if !failed {
		return errors.New("the stream has not failed: there is nothing to try again")
	}
	_, err = fmt.Fprintf(g.stdout, "done: stream %s of perspective %s will be tried again\n", c.Stream, c.Name)
	return err
}

type perspectiveSkipCmd struct {
	streamArgs
	Event  uuid.UUID `arg:"" help:"Event id."`
	Reason string    `required:"" placeholder:"TEXT" help:"Why, for the record."`
}

func (c *perspectiveSkipCmd) Run(ctx context.Context, g *globals) error {
	return g.act(ctx, fmt.Sprintf("event %s is left out of stream %s of perspective %s", c.Event, c.Stream, c.Name),
		`select rewind.skip_perspective_event(p_perspective => $1, p_stream => $2, p_event_id => $3::text::uuid, p_reason => $4, p_options => $5)`,
		c.Name, c.Stream, c.Event.String(), c.Reason, tenantOption(c.Tenant))
}

// act runs a statement that does what is said.
func (g *globals) act(ctx context.Context, what, statement string, args ...any) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, statement, args...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.stdout, "done: %s\n", what)
	return err
}
