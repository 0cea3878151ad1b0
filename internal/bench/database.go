package bench

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/migrate"
)

const (
	maxConns       = 72
	cleanupTimeout = 30 * time.Second
)

//go:embed schema.sql
var schemaSQL string

// Server is what the figures are of.
type Server struct {
	Version  string            `json:"version"`
	Cores    int               `json:"cores"` // of this machine, which need not be the server's
	Settings map[string]string `json:"settings"`
}

// settingsShown are those that say most about the figures.
var settingsShown = []string{
	"fsync", "full_page_writes", "synchronous_commit", "wal_level", "shared_buffers", "work_mem", "max_wal_size",
}

// server makes the databases.
type server struct {
	Server
	url string
}

func openServer(ctx context.Context, url string) (*server, error) {
	s := &server{url: url, Server: Server{Cores: runtime.NumCPU(), Settings: map[string]string{}}}
	config, err := s.config("")
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := conn.QueryRow(ctx, `select current_setting('server_version')`).Scan(&s.Version); err != nil {
		return nil, err
	}
	for _, name := range settingsShown {
		var value string
		if err := conn.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value); err != nil {
			return nil, err
		}
		s.Settings[name] = value
	}
	return s, nil
}

// config is that of a database; "": the one that was given. Commits are durable, as far as the server's fsync goes.
func (s *server) config(database string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return nil, err
	}
	if database != "" {
		config.ConnConfig.Database = database
	}
	config.MaxConns = maxConns
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	config.ConnConfig.RuntimeParams["application_name"] = "rewindworker bench"
	return config, nil
}

func (s *server) exec(ctx context.Context, statement string) error {
	config, err := s.config("")
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// env is the database in which scenarios run.
type env struct {
	server *server
	scale  scale
	name   string
	pool   *pgxpool.Pool
	doing  func(what string)
	logs   map[logShape]string // trees by what is in them
	names  int                 // given out
}

func (s *server) newEnv(ctx context.Context, scale scale) (_ *env, err error) {
	e := &env{server: s, scale: scale, name: "rewind_bench_" + strings.ToLower(rand.Text()[:10]), logs: map[logShape]string{}}
	err = s.exec(ctx, "create database "+e.name)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return nil, fmt.Errorf("bench works in a database of its own, and this user may not create one (alter role … createdb): %w", err)
	}
	defer func() {
		if err != nil { // the database may be there even if nobody waited for it
			err = errors.Join(err, e.close(ctx))
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("create a database to measure in: %w", err)
	}
	config, err := s.config(e.name)
	if err != nil {
		return nil, err
	}
	if _, err := migrate.Up(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	_, err = e.pool.Exec(ctx, schemaSQL)
	return e, err
}

// close drops the database, also when ctx has ended.
func (e *env) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if e.pool != nil {
		e.pool.Close()
	}
	if err := e.server.exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", e.name)); err != nil {
		return fmt.Errorf("drop database %s: %w", e.name, err)
	}
	return nil
}

func (e *env) exec(ctx context.Context, statement string, args ...any) error {
	_, err := e.pool.Exec(ctx, statement, args...)
	return err
}

// fresh is a name that nothing has yet.
func (e *env) fresh(what string) string {
	e.names++
	return fmt.Sprintf("%s_%d", what, e.names)
}

// session returns a connection of its own, on which nothing was planned before.
func (e *env) session(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig)
}

// tableName is a table of schema bench as COPY takes it.
func tableName(name string) pgx.Identifier { return strings.Split(name, ".") }
