package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

type verifyCmd struct {
	Perspective string `arg:"" optional:"" help:"Perspective to verify; all without it."`
	Stream      string `placeholder:"KEY" help:"Verify only this stream."`
	Tenant      string `placeholder:"ID" help:"Tenant of the stream."`
	JSON        bool   `name:"json" help:"Print JSON, one object per problem."`
}

func (c *verifyCmd) Help() string {
	return `Folds every stream anew and compares. It runs beside workers and writers: each stream is judged at its cursor's own place.`
}

type verifyProblem struct {
	PerspectiveName string          `json:"perspective_name"`
	StreamKey       *string         `json:"stream_key"`
	Problem         string          `json:"problem"`
	Expected        json.RawMessage `json:"expected"`
	Actual          json.RawMessage `json:"actual"`
	AppliedVersion  *int64          `json:"applied_version"`
}

// verifyTarget is a perspective and what its cursors hold.
type verifyTarget struct {
	Name    string
	InGo    bool
	Streams int64
	Events  int64
	Failed  int64
}

func verifyTargets(ctx context.Context, db querier, perspective string) ([]verifyTarget, error) {
	targets, err := queryRows[verifyTarget](ctx, db, `
		select p.perspective_name, p.apply is null, c.streams, c.events, c.failed
		from rewind.perspectives p
		cross join lateral (
		  select count(*) as streams, coalesce(sum(c.events_applied), 0)::bigint as events,
		    count(*) filter (where c.status & 4 <> 0) as failed
		  from rewind.perspective_cursors c
		  where c.generation_id = p.active_generation
		) c
		where $1 in ('', p.perspective_name)
		order by p.perspective_name`, perspective)
	if err == nil && perspective != "" && len(targets) == 0 {
		err = fmt.Errorf("there is no perspective %q", perspective)
	}
	return targets, err
}

// verify returns what is wrong with a perspective, or with one stream of it.
func verify(ctx context.Context, pool *pgxpool.Pool, perspective, stream, tenant string) ([]verifyProblem, error) {
	var key *string
	if stream != "" {
		key = &stream
	}
	return queryRows[verifyProblem](ctx, pool, `
		select perspective_name, stream_key, problem, expected, actual, applied_version
		from rewind.verify_perspective(p_perspective => $1, p_stream => $2, p_options => $3)`, perspective, key, tenantOption(tenant))
}

func (c *verifyCmd) Run(ctx context.Context, g *globals) error {
	if c.Stream != "" && c.Perspective == "" {
		return usageError{errors.New("--stream needs a perspective")}
	}
	if c.Tenant != "" && c.Stream == "" {
		return usageError{errors.New("--tenant needs --stream")}
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	targets, err := verifyTargets(ctx, pool, c.Perspective)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		fmt.Fprintln(g.stderr, "nothing to verify: there are no perspectives")
		return nil
	}
	found := 0
	for _, target := range targets {
		problems, err := verify(ctx, pool, target.Name, c.Stream, c.Tenant)
		if err != nil {
			return err
		}
		found += len(problems)
		if c.JSON {
			err = printLines(g, problems)
		} else {
			err = c.print(g, target, problems)
		}
		if err != nil {
			return err
		}
		if target.InGo {
			g.note("%s is folded in Go: its models are checked by the application that folds them, only counts and places were checked here",
				target.Name)
		}
	}
	if found > 0 {
		return errors.New(count(int64(found), "problem"))
	}
	return nil
}

func (c *verifyCmd) print(g *globals, target verifyTarget, problems []verifyProblem) error {
	what := count(target.Streams, "stream") + ", " + count(target.Events, "event")
	if c.Stream != "" {
		what = fmt.Sprintf("stream %s", c.Stream)
	}
	failed := ""
	if c.Stream == "" && target.Failed > 0 {
		failed = fmt.Sprintf("; %s failed before an event: see rewindworker doctor", count(target.Failed, "stream"))
	}
	if len(problems) == 0 {
		_, err := fmt.Fprintf(g.stdout, "%s: well (%s)%s\n", target.Name, what, failed)
		return err
	}
	if _, err := fmt.Fprintf(g.stdout, "%s: %s (%s)%s\n", target.Name, count(int64(len(problems)), "problem"), what, failed); err != nil {
		return err
	}
	t := newTable(g.stdout, "stream", "problem", "expected", "actual", "applied version")
	for _, p := range problems {
		var stream string
		if p.StreamKey != nil {
			stream = *p.StreamKey
		}
		var version any
		if p.AppliedVersion != nil {
			version = *p.AppliedVersion
		}
		t.AppendRow([]any{stream, p.Problem, shorten(string(p.Expected), 60), shorten(string(p.Actual), 60), version})
	}
	t.Render()
	return nil
}
