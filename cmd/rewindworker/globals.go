package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/pgserver"
	"github.com/rewindpg/rewind/migrate"
)

// globals are the flags of every command, and what every command works with.
type globals struct {
	DatabaseURL string `help:"Database to use; else REWIND_DATABASE_URL; else a server of its own in the data directory." placeholder:"URL"`
	DataDir     string `help:"Data directory of the server of its own (${default})." default:".rewind" placeholder:"DIR"`

	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	logger *slog.Logger
	server *pgserver.Server
}

// connect opens the database and checks that its schema fits. An embedded one is migrated first.
func (g *globals) connect(ctx context.Context) (*pgxpool.Pool, error) { return g.connectWith(ctx, 0) }

// connectWith is connect with at least so many connections.
func (g *globals) connectWith(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	url, err := g.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	return g.connectTo(ctx, url, conns)
}

// connectEmbedded is connect for the embedded server, whatever the environment says.
func (g *globals) connectEmbedded(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := g.openEmbedded(ctx)
	if err != nil {
		return nil, err
	}
	return g.connectTo(ctx, url, 0)
}

func (g *globals) connectTo(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	if g.server != nil {
		if _, err := migrateDatabase(ctx, url); err != nil {
			return nil, err
		}
	}
	return openPool(ctx, url, conns)
}

// openPool connects to a database whose schema is as it must be, with at least so many connections.
func openPool(ctx context.Context, url string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	config.MaxConns = max(config.MaxConns, conns)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := migrate.Check(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// openDatabase returns the URL of the database. Without one it starts or joins the embedded server.
func (g *globals) openDatabase(ctx context.Context) (string, error) {
	if g.DatabaseURL != "" {
		return g.DatabaseURL, nil
	}
	if url := g.getenv("REWIND_DATABASE_URL"); url != "" {
		return url, nil
	}
	g.note("using the server of its own in %s (no --database-url)", g.DataDir)
	return g.openEmbedded(ctx)
}

// openEmbedded starts or joins the embedded server and returns the URL of its database.
func (g *globals) openEmbedded(ctx context.Context) (string, error) {
	if g.server == nil {
		server, err := pgserver.Start(ctx, pgserver.Config{Dir: g.DataDir})
		if err != nil {
			return "", err
		}
		g.server = server
	}
	return g.server.URL("postgres"), nil
}

// close ends the use of the embedded server.
func (g *globals) close() error {
	if g.server == nil {
		return nil
	}
	return g.server.Stop()
}

// printJSON writes one object on a line of its own.
func (g *globals) printJSON(v any) error {
	return json.NewEncoder(g.stdout).Encode(v)
}

func migrateDatabase(ctx context.Context, url string) (migrate.Result, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return migrate.Result{}, err
	}
	return migrate.Up(ctx, config)
}
