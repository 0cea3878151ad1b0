package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/migrate"
)

func TestMigrateInstallsOnce(t *testing.T) {
	t.Parallel()
	url := testdb.NewEmptyURL(t)

	var applied, migrated atomic.Int32
	var g errgroup.Group
	for range 20 {
		g.Go(func() error {
			result, err := migrateUp(t.Context(), url)
			if result.BundleApplied {
				applied.Add(1)
			}
			migrated.Add(int32(len(result.Migrations)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	pool := testdb.Open(t, url)
	state, err := migrate.Status(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if applied.Load() != 1 || int(migrated.Load()) != len(state.Migrations) {
		t.Errorf("20 migrators applied the functions %d times and %d migrations, want 1 and %d", applied.Load(), migrated.Load(), len(state.Migrations))
	}
	if state.Schema != "current" {
		t.Errorf("schema is %s afterwards", state.Schema)
	}
	for _, m := range state.Migrations {
		if m.AppliedAt == nil {
			t.Errorf("%s is pending afterwards", m.Name)
		}
	}
	wantNoAdvisoryLock(t, pool)
}

// Roles are shared by the databases of a server, so a server without them is needed to see migrations race for them.
func TestMigrateManyDatabasesOfFreshServer(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	admin := testdb.Open(t, server.URL("postgres"))
	var urls []string
	for i := range 20 {
		name := fmt.Sprintf("db%d", i)
		mustExec(t, admin, "create database "+name)
		urls = append(urls, server.URL(name))
	}
	var g errgroup.Group
	for _, url := range urls {
		g.Go(func() error {
			_, err := migrateUp(t.Context(), url)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateFailingBundle(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	before := routines(t, pool)
	mustExec(t, pool, `update rewind.schema_bundle set checksum = 'of another build'`)
	mustExec(t, pool, `create function public.refuse() returns event_trigger language plpgsql as 'begin raise ''no''; end'`)
	mustExec(t, pool, `create event trigger refuse on ddl_command_start when tag in ('REVOKE') execute function public.refuse()`)

	_, err := migrateUp(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "sql/functions/99_privileges.sql") {
		t.Fatalf("error %v doesn't name the failing file", err)
	}
	if diff := cmp.Diff(before, routines(t, pool)); diff != "" {
		t.Error("functions changed (-before +after):\n", diff)
	}
	if err := migrate.Check(t.Context(), pool); !errors.Is(err, migrate.ErrSchemaOlder) {
		t.Errorf("check says %v, want that the schema is older", err)
	}
	wantNoAdvisoryLock(t, pool)

	mustExec(t, pool, `drop event trigger refuse`)
	if _, err := migrateUp(t.Context(), url); err != nil {
		t.Errorf("with the obstacle gone: %v", err)
	}
}

func TestMigrateFailingMigration(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	before := routines(t, pool)
	mustExec(t, pool, `update rewind.schema_bundle set checksum = 'of another build'`)
	// A migration that is pending again fails, because its tables are there.
	mustExec(t, pool, `delete from rewind.goose_db_version where version_id = (select max(version_id) from rewind.goose_db_version)`)

	if _, err := migrateUp(t.Context(), url); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(before, routines(t, pool)); diff != "" {
		t.Error("functions changed (-before +after):\n", diff)
	}
	wantNoAdvisoryLock(t, pool)
}

func TestMigrateSweep(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	before := names(routines(t, pool))
	for _, statement := range []string{
		`create function rewind.stale() returns int language sql return 1`,
		`create function rewind.stale_caller() returns int language sql return rewind.stale()`,
		`create function rewind._now(int) returns int language sql return $1`,
		`create procedure rewind.stale_procedure() language sql as ''`,
		`create aggregate rewind.stale_aggregate(int) (sfunc = int4pl, stype = int)`,
		`create function rewind.shown() returns int language sql return 1`,
		`create view public.shows as select rewind.shown()`,
		`create function rewind.defaulted() returns int language sql return 1`,
		`create table public.defaults (n int default rewind.defaulted())`,
		`create function public.own() returns int language sql return 1`,
		`create function rewind_gen.generated() returns int language sql return 1`,
		`update rewind.schema_bundle set checksum = 'of another build'`,
	} {
		mustExec(t, pool, statement)
	}
	if _, err := migrateUp(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	want := append(before, "rewind.shown()", "rewind.defaulted()")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(routines(t, pool))); diff != "" {
		t.Error("routines of schema rewind (-want +got):\n", diff)
	}
	mustExec(t, pool, `select shows.*, public.own(), rewind_gen.generated() from public.shows`)
}

func TestMigrateRefusesNewerSchema(t *testing.T) {
	t.Parallel()
	for name, makeNewer := range map[string]string{
		"functions": `update rewind.schema_bundle set version = 1000`,
		"tables": `with other as (update rewind.schema_bundle set checksum = 'of another build')
			insert into rewind.goose_db_version (version_id, is_applied) values (1000, true)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.NewURL(t)
			pool := testdb.Open(t, url)
			mustExec(t, pool, makeNewer)
			before := routines(t, pool)
			if _, err := migrateUp(t.Context(), url); !errors.Is(err, migrate.ErrSchemaNewer) {
				t.Errorf("migrate says %v, want that the schema is newer", err)
			}
			if diff := cmp.Diff(before, routines(t, pool)); diff != "" {
				t.Error("functions changed (-before +after):\n", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	if err := migrate.Check(t.Context(), pool); err != nil {
		t.Errorf("on a migrated database: %v", err)
	}
	mustExec(t, pool, `update rewind.schema_bundle set version = version + 1`)
	if err := migrate.Check(t.Context(), pool); !errors.Is(err, migrate.ErrSchemaNewer) {
		t.Errorf("on a newer one: %v", err)
	}
	empty := testdb.Open(t, testdb.NewEmptyURL(t))
	if _, err := rewind.Append(t.Context(), empty, "t", "s", []rewind.NewEvent{{Type: "t"}}); err == nil || !strings.Contains(err.Error(), "rewindworker migrate installs it") {
		t.Errorf("appending without the schema: %v", err)
	}
	if err := migrate.Check(t.Context(), empty); !errors.Is(err, migrate.ErrSchemaMissing) {
		t.Errorf("on an empty one: %v", err)
	}
}

// What psql makes of the printed file is what Up makes, on an empty database and on one that is migrated already.
func TestPrint(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	psql, pgDump := server.Program("psql"), server.Program("pg_dump")
	if _, err := os.Stat(psql); err != nil {
		missing(t, "psql and pg_dump beside the server's programs")
		return
	}
	var script bytes.Buffer
	if err := migrate.Print(&script); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rewind.sql")
	if err := os.WriteFile(file, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := testdb.Open(t, server.URL("postgres"))
	dump := func(database string) string {
		// Only what differs between two databases that are the same is left out: when, and which.
		text := run(t, pgDump, "--dbname", server.URL(database), "--exclude-table-data=rewind.settings", "--exclude-table-data=rewind.trees",
			"--exclude-table-data=rewind.goose_db_version", "--exclude-table-data=rewind.schema_bundle")
		versions := run(t, psql, "-X", "-d", server.URL(database), "-c", `select id, version_id, is_applied from rewind.goose_db_version`,
			"-c", `select version, checksum from rewind.schema_bundle`)
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, `\restrict`) || strings.HasPrefix(line, `\unrestrict`)
		})
		return strings.Join(lines, "\n") + versions
	}
	for _, name := range []string{"up", "printed"} {
		mustExec(t, admin, "create database "+name)
	}
	if _, err := migrateUp(t.Context(), server.URL("up")); err != nil {
		t.Fatal(err)
	}
	want := dump("up")
	run(t, psql, "-X", "-q", "-d", server.URL("printed"), "-f", file)
	if diff := cmp.Diff(want, dump("printed")); diff != "" {
		t.Error("printed schema (-up +printed):\n", diff)
	}
	run(t, psql, "-X", "-q", "-d", server.URL("up"), "-f", file)
	if diff := cmp.Diff(want, dump("up")); diff != "" {
		t.Error("printed schema on a migrated database (-before +after):\n", diff)
	}
}

func migrateUp(ctx context.Context, url string) (migrate.Result, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return migrate.Result{}, err
	}
	return migrate.Up(ctx, config)
}

// routine identifies a version of a routine: replacing it changes the transaction.
type routine struct{ Name, Transaction string }

func routines(t *testing.T, pool *pgxpool.Pool) []routine {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select oid::regprocedure::text, xmin::text from pg_proc where pronamespace = 'rewind'::regnamespace
		order by oid::regprocedure::text collate "C"`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[routine])
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("schema rewind has no routines")
	}
	return all
}

func names(routines []routine) (names []string) {
	for _, r := range routines {
		names = append(names, r.Name)
	}
	return names
}

func wantNoAdvisoryLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var locks int
	err := pool.QueryRow(t.Context(), `
		select count(*) from pg_locks
		where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`).Scan(&locks)
	if err != nil {
		t.Fatal(err)
	}
	if locks != 0 {
		t.Errorf("%d advisory locks are left", locks)
	}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", filepath.Base(program), err, stderr.String())
	}
	return string(output)
}

// missing says that something isn't installed that a test needs, which is a failure where everything has to be.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("REWIND_TEST_STRICT") != "" {
		t.Fatalf("not installed: %s", what)
	}
	t.Logf("NOT TESTED, because not installed: %s", what)
}
