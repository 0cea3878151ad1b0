// Package migrate installs and upgrades the rewind schema, and tells whether a database has the one that this program needs.
//
// The tables are migrations, applied once each. The functions are a bundle, applied as a whole whenever it differs from what the
// database has. Whoever migrates holds a transaction-level advisory lock, so that any number of programs may call [Up] at once.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// SchemaVersion is the version of the schema that this program needs. It grows with every release that changes anything in sql/.
const SchemaVersion = 1

const (
	// lockKey is "rewind" in ASCII: the advisory lock of whoever migrates a database.
	lockKey          = 0x726577696e64
	lockPollInterval = 100 * time.Millisecond
)

// Result says what [Up] did.
type Result struct {
	Version       int      `json:"version"`
	Migrations    []string `json:"migrations"`
	BundleApplied bool     `json:"bundle_applied"`
}

// Up brings a database to this program's schema. It needs two connections at a time, and no session state: PgBouncer in
// transaction mode will do. A database whose schema is newer than this program is left alone: [ErrSchemaNewer].
func Up(ctx context.Context, config *pgx.ConnConfig) (Result, error) {
	config = config.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // named prepared statements are session state
	result := Result{Version: SchemaVersion, Migrations: []string{}}

	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return result, fmt.Errorf("connect to migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if done, err := upToDate(ctx, conn); done || err != nil {
		return result, err
	}

	// The lock's own transaction applies the bundle in the end: the lock is held until exactly then, and if its connection is lost
	// nothing is applied.
	tx, err := lock(ctx, conn)
	if err != nil {
		return result, fmt.Errorf("take the migration lock: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))

	if done, err := upToDate(ctx, tx); done || err != nil { // somebody else may have done it meanwhile
		return result, err
	}
	if err := migrateTables(ctx, config, &result); err != nil {
		return result, err
	}
	if err := applyBundle(ctx, tx); err != nil {
		return result, err
	}
	if err := tx.Commit(ctx); err != nil {
		return result, fmt.Errorf("commit the functions: %w", err)
	}
	result.BundleApplied = true
	return result, nil
}

// upToDate tells whether there is nothing to do. A schema that must not be touched is an error.
func upToDate(ctx context.Context, db Querier) (bool, error) {
	err := Check(ctx, db)
	if errors.Is(err, ErrSchemaMissing) || errors.Is(err, ErrSchemaOlder) {
		return false, nil
	}
	return err == nil, err
}

// lock returns a transaction that holds the migration lock. It polls, because a session that waits in a statement holds a snapshot,
// for which a CREATE INDEX CONCURRENTLY of the one that migrates would wait.
func lock(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	ticker := time.NewTicker(lockPollInterval)
	defer ticker.Stop()
	for {
		tx, locked, err := tryLock(ctx, conn)
		if locked || err != nil {
			return tx, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

func tryLock(ctx context.Context, conn *pgx.Conn) (tx pgx.Tx, locked bool, err error) {
	tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if !locked {
			err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
		}
	}()
	// The transaction is idle while the tables are migrated.
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil {
		return nil, false, err
	}
	err = tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(lockKey)).Scan(&locked)
	return tx, locked, err
}

// migrateTables applies what is pending, each migration in a transaction of its own.
func migrateTables(ctx context.Context, config *pgx.ConnConfig, result *Result) (err error) {
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()

	// CREATE SCHEMA IF NOT EXISTS wants the right to create one even where it exists.
	var exists bool
	if err := db.QueryRowContext(ctx, `select to_regnamespace('rewind') is not null`).Scan(&exists); err != nil {
		return fmt.Errorf("look for schema rewind: %w", err)
	}
	if !exists {
		if _, err := db.ExecContext(ctx, readFile(schemaFile)); err != nil {
			return fmt.Errorf("create schema rewind: %w", err)
		}
	}

	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrationFS(),
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("load the migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the tables: %w", err)
	}
	if current > target {
		return fmt.Errorf("%w (tables %d, program %d): use a newer rewindworker", ErrSchemaNewer, current, target)
	}
	applied, err := provider.Up(ctx)
	for _, m := range applied {
		result.Migrations = append(result.Migrations, path.Base(m.Source.Path))
	}
	if err != nil {
		return fmt.Errorf("migrate the tables: %w", err)
	}
	return nil
}

// applyBundle applies every file of functions/ and records what was applied.
func applyBundle(ctx context.Context, tx pgx.Tx) error {
	for _, name := range functionFiles() {
		if err := applyFile(ctx, tx, name); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, recordBundle()); err != nil {
		return fmt.Errorf("record the schema version: %w", err)
	}
	return nil
}

// applyFile runs one file, whose statements go to the server as one string. Its error says where in the file.
func applyFile(ctx context.Context, tx pgx.Tx, name string) error {
	text := readFile(name)
	results, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll()
	if err == nil {
		return nil
	}
	// Some errors come without a position. Then it was the statement after those that have a result.
	place := fmt.Sprintf("sql/%s, statement %d", name, len(results)+1)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Position > 0 {
		place = fmt.Sprintf("sql/%s:%d", name, lineOf(text, int(e.Position)))
	}
	return fmt.Errorf("apply %s: %w", place, err)
}

// lineOf returns the line of a character position; both count from 1.
func lineOf(text string, position int) int {
	line := 1
	for _, r := range text {
		if position--; position == 0 {
			break
		}
		if r == '\n' {
			line++
		}
	}
	return line
}
