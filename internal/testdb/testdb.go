// Package testdb gives every test a database of its own.
//
// The server is the one of REWIND_TEST_DATABASE_URL if that is set, else a container if a Docker daemon answers and has or gets the
// image (REWIND_TEST_IMAGE), else an embedded one. REWIND_TEST_SERVER=url|testcontainers|embedded forces one of them. A process has
// at most one server, started by its first test that wants a database. Databases are cloned from a template for each state of the
// schema, rewind_template_*; on a server of one's own these stay.
package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/rewindpg/rewind/migrate"
)

const (
	setupTimeout   = 2 * time.Minute
	cleanupTimeout = 30 * time.Second
	maxPoolConns   = 20
)

// server is where the databases are made.
type server struct {
	url  *url.URL // of a database to connect to for making others
	kept bool     // it outlives the tests
	stop func() error
}

var theServer = sync.OnceValues(startServer)

var theTemplate = sync.OnceValues(func() (string, error) {
	s, err := theServer()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return s.makeTemplate(ctx)
})

// started tells Main whether there is a server to stop.
var started bool

// Main is for TestMain of packages that use databases: it runs the tests, stops the server and fails if goroutines are left over.
func Main(m *testing.M) {
	code := m.Run()
	if started {
		s, err := theServer()
		if err == nil {
			err = s.stop()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "testdb: stop the server:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// New returns a pool on a database with the rewind schema. The database is dropped when the test ends; on a server that outlives
// the tests a failed test's database is kept.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, NewURL(t))
}

// NewURL is [New] for tests that connect by themselves.
func NewURL(t testing.TB) string {
	t.Helper()
	template, err := theTemplate()
	if err != nil {
		t.Fatal("testdb:", err)
	}
	return createDatabase(t, template)
}

// NewEmptyURL returns the URL of a database without the rewind schema.
func NewEmptyURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template1")
}

// Open returns a pool on a database; it is closed when the test ends.
func Open(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	config.MaxConns = maxPoolConns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func createDatabase(t testing.TB, template string) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatal("testdb:", err)
	}
	name := "rewind_test_" + strings.ToLower(rand.Text()[:12])
	if err := s.exec(t.Context(), fmt.Sprintf(`create database %s template %s`, name, template)); err != nil {
		t.Fatal("testdb:", err)
	}
	address := s.urlOf(name)
	t.Cleanup(func() {
		if t.Failed() && s.kept {
			t.Log("testdb: kept for a look:", address)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := s.exec(ctx, fmt.Sprintf(`drop database %s with (force)`, name)); err != nil {
			t.Error("testdb:", err)
		}
	})
	return address
}

func (s *server) urlOf(database string) string {
	u := *s.url
	u.Path = "/" + database
	return u.String()
}

func (s *server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// makeTemplate returns the name of a database with today's schema, to be cloned. Other processes may want the same one on the same
// server: the first makes it under another name and renames it when it is whole.
func (s *server) makeTemplate(ctx context.Context) (name string, err error) {
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()

	name = "rewind_template_" + migrate.Checksum()[:16]
	building := name + "_building"
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext($1))`, name); err != nil { // released with the connection
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	for _, statement := range []string{
		fmt.Sprintf(`drop database if exists %s with (force)`, building),
		fmt.Sprintf(`create database %s template template1`, building),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	config, err := pgx.ParseConfig(s.urlOf(building))
	if err != nil {
		return "", err
	}
	if _, err := migrate.Up(ctx, config); err != nil {
		return "", err
	}
	for _, statement := range []string{
		// Nobody connects to it, since a database that somebody is connected to can't be cloned.
		fmt.Sprintf(`alter database %s allow_connections false`, building),
		fmt.Sprintf(`alter database %s rename to %s`, building, name),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	return name, nil
}
