package main

import (
	"context"
	"errors"
	"fmt"
)

type perspectiveCheckCmd struct {
	Name    string `arg:"" help:"Perspective."`
	Streams int    `default:"20" placeholder:"N" help:"Streams to try the fold on (${default})."`
	JSON    bool   `name:"json" help:"Print JSON, one object per finding."`
}

func (c *perspectiveCheckCmd) Help() string {
	return `Reads the fold's function for what may give another result each time (clocks, random numbers, tables), folds some streams twice, event
by event and in other orders, and tells what it finds. Exits with 1 if there is a warning.`
}

type perspectiveFinding struct {
	Subject  string `json:"subject"`
	Severity string `json:"severity"`
	Finding  string `json:"finding"`
}

func (c *perspectiveCheckCmd) Run(ctx context.Context, g *globals) error {
	if c.Streams < 1 {
		return usageError{fmt.Errorf("--streams must be positive, not %d", c.Streams)}
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	findings, err := queryRows[perspectiveFinding](ctx, pool,
		`select subject, severity, finding from rewind.check_perspective(p_perspective => $1, p_options => $2)`,
		c.Name, jsonText(map[string]int{"streams": c.Streams}))
	if err != nil {
		return err
	}
	if c.JSON {
		err = printLines(g, findings)
	} else {
		t := newTable(g.stdout, "severity", "subject", "finding")
		for _, f := range findings {
			t.AppendRow([]any{f.Severity, f.Subject, f.Finding})
		}
		t.Render()
	}
	var warnings int64
	for _, f := range findings {
		if f.Severity == "warning" {
			warnings++
		}
	}
	if err == nil && warnings > 0 {
		err = errors.New(count(warnings, "warning"))
	}
	return err
}
