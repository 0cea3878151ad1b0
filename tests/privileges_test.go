package tests

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestPrivileges(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	mustExec(t, pool, `select rewind.create_tree('orders')`)
	const (
		appendEvent = `select * from rewind.append_events('orders', 's', '[{"type": "placed"}]')`
		appendBatch = `select * from rewind.append_batch('orders', '{s}', '{null}', '{placed}', '{null}')`
		readStream  = `select * from rewind.read_stream('orders', 's')`
		createTree  = `select rewind.create_tree('invoices')`
		readLog     = `select * from rewind.wal`
		insertLog   = `insert into rewind.wal select * from rewind.wal`
		readCursors = `select * from rewind.perspective_cursors`
		moveCursors = `update rewind.perspective_cursors set applied_version = 0`
	)
	for role, may := range map[string][]string{
		"rewind_reader": {readStream, readLog, readCursors},
		"rewind_writer": {appendEvent, appendBatch},
		"rewind_worker": {readStream, readLog, readCursors, moveCursors},
		"rewind_admin":  {appendEvent, appendBatch, readStream, createTree, readLog, insertLog, readCursors, moveCursors},
	} {
		t.Run(role, func(t *testing.T) {
			for _, statement := range []string{
				appendEvent, appendBatch, readStream, createTree, readLog, insertLog, readCursors, moveCursors,
			} {
				allowed := slices.Contains(may, statement)
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), `set local role `+role); err != nil {
					t.Fatal(err)
				}
				_, err = tx.Exec(t.Context(), statement)
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				var pgErr *pgconn.PgError
				denied := errors.As(err, &pgErr) && pgErr.Code == "42501"
				switch {
				case allowed && err != nil:
					t.Errorf("%s: %v", statement, err)
				case !allowed && !denied:
					t.Errorf("%s is not denied: %v", statement, err)
				}
			}
		})
	}
}

// Whoever may create perspectives is not the owner: functions that come from them run with their own rights.
func TestAdminIsNotOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`
		create function app.tell(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as
			'begin raise exception ''it ran as %'', current_user using errcode = ''42501''; end';
		grant usage, create on schema app to rewind_admin`)
	tx := begin(t, w.pool, pgx.TxOptions{})
	if _, err := tx.Exec(t.Context(), `set local role rewind_admin`); err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]string{
		`select from rewind.create_perspective('told', 't', 'app.tell(jsonb, rewind.event)')`:                                "42P13: it ran as rewind_admin",
		`select from rewind.create_perspective('another', 't', 'app.chain(jsonb, rewind.event)')`:                            "",
		`create trigger mine before insert on rewind.wal for each row execute function suppress_redundant_updates_trigger()`: "42501: permission denied",
	} {
		t.Run(statement, func(t *testing.T) {
			savepoint, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := savepoint.Rollback(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			got := ""
			if _, err := savepoint.Exec(t.Context(), statement); err != nil {
				var pgErr *pgconn.PgError
				if !errors.As(err, &pgErr) {
					t.Fatal(err)
				}
				got = pgErr.Code + ": " + pgErr.Message
			}
			code, message, _ := strings.Cut(want, ": ")
			if !strings.HasPrefix(got, code) || !strings.Contains(got, message) || (want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
