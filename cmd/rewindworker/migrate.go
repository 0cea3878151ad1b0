package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/migrate"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"withargs" help:"Install or upgrade the schema (default)."`
	Status migrateStatusCmd `cmd:"" help:"Show what the database has and what is pending."`
	Print  migratePrintCmd  `cmd:"" help:"Print one SQL file for psql -f that does the same."`
}

type migrateUpCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *migrateUpCmd) Run(ctx context.Context, g *globals) error {
	url, err := g.openDatabase(ctx)
	if err != nil {
		return err
	}
	result, err := migrateDatabase(ctx, url)
	if err != nil {
		return err
	}
	if c.JSON {
		return g.printJSON(result)
	}
	if !result.BundleApplied {
		_, err = fmt.Fprintf(g.stdout, "nothing to do: the schema is at version %d\n", result.Version)
		return err
	}
	for _, name := range result.Migrations {
		if _, err := fmt.Fprintln(g.stdout, "applied", name); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(g.stdout, "done: %d migrations and the functions applied, the schema is at version %d\n",
		len(result.Migrations), result.Version)
	return err
}

type migrateStatusCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *migrateStatusCmd) Run(ctx context.Context, g *globals) error {
	url, err := g.openDatabase(ctx)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	state, err := migrate.Status(ctx, conn)
	if err != nil {
		return err
	}
	if err := c.print(g, state); err != nil {
		return err
	}
	return migrate.Check(ctx, conn)
}

func (c *migrateStatusCmd) print(g *globals, state migrate.State) error {
	if c.JSON {
		return g.printJSON(state)
	}
	w := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "schema\t%s (database %d, needed %d)\n", state.Schema, state.Version, state.Needed)
	for _, m := range state.Migrations {
		when := "pending"
		if m.AppliedAt != nil {
			when = m.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\n", m.Name, when)
	}
	return w.Flush()
}

type migratePrintCmd struct{}

func (migratePrintCmd) Run(g *globals) error { return migrate.Print(g.stdout) }
