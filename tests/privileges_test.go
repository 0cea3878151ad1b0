package tests

import (
	"errors"
	"slices"
	"testing"

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
