package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// What [Check] and [Up] find wrong with a database's schema.
var (
	ErrSchemaMissing = errors.New("the rewind schema is not installed")
	ErrSchemaOlder   = errors.New("the rewind schema is older than this program, or of another build")
	ErrSchemaNewer   = errors.New("the rewind schema is newer than this program")
)

// Querier is what reading the schema's state takes: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns nil if the database has the schema that this program needs, else an error that wraps [ErrSchemaMissing],
// [ErrSchemaOlder] or [ErrSchemaNewer] and says what to do.
func Check(ctx context.Context, db Querier) error {
	b, err := readBundle(ctx, db)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	return b.check()
}

// State of a database's schema, as [Status] reports it.
type State struct {
	Schema     string      `json:"schema"` // current, missing, older, newer
	Version    int         `json:"version"`
	Needed     int         `json:"needed"`
	AppliedAt  *time.Time  `json:"applied_at"`
	Migrations []Migration `json:"migrations"`
}

// Migration of the tables; AppliedAt is nil while it is pending.
type Migration struct {
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

// Status reports what the database has and what this program would bring.
func Status(ctx context.Context, db Querier) (State, error) {
	b, err := readBundle(ctx, db)
	if err != nil {
		return State{}, fmt.Errorf("read the schema version: %w", err)
	}
	state := State{Schema: "current", Version: b.version, Needed: SchemaVersion, AppliedAt: b.appliedAt}
	switch err := b.check(); {
	case errors.Is(err, ErrSchemaMissing):
		state.Schema = "missing"
	case errors.Is(err, ErrSchemaOlder):
		state.Schema = "older"
	case errors.Is(err, ErrSchemaNewer):
		state.Schema = "newer"
	}
	applied, err := readMigrations(ctx, db)
	if err != nil {
		return State{}, fmt.Errorf("read the applied migrations: %w", err)
	}
	for _, name := range migrationFiles() {
		m := Migration{Name: name}
		if at, ok := applied[migrationVersion(name)]; ok {
			m.AppliedAt = &at
		}
		state.Migrations = append(state.Migrations, m)
	}
	return state, nil
}

// bundle is the row of rewind.schema_bundle; its version is 0 if there is none.
type bundle struct {
	version   int
	checksum  string
	appliedAt *time.Time
}

func (b bundle) check() error {
	switch {
	case b.version == 0:
		return fmt.Errorf("%w: rewindworker migrate installs it, with the same --database-url", ErrSchemaMissing)
	case b.version > SchemaVersion:
		return fmt.Errorf("%w (database %d, program %d): use a newer rewindworker", ErrSchemaNewer, b.version, SchemaVersion)
	case b.version < SchemaVersion || b.checksum != checksum():
		return fmt.Errorf("%w (database %d, program %d): rewindworker migrate brings it up to date, with the same --database-url", ErrSchemaOlder, b.version, SchemaVersion)
	}
	return nil
}

func readBundle(ctx context.Context, db Querier) (b bundle, err error) {
	exists, err := tableExists(ctx, db, "rewind.schema_bundle")
	if err != nil || !exists {
		return b, err
	}
	err = db.QueryRow(ctx, `select version, checksum, applied_at from rewind.schema_bundle`).
		Scan(&b.version, &b.checksum, &b.appliedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return bundle{}, nil
	}
	return b, err
}

// readMigrations returns by version when each migration was applied.
func readMigrations(ctx context.Context, db Querier) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	exists, err := tableExists(ctx, db, versionTable)
	if err != nil || !exists {
		return applied, err
	}
	// goose writes now() into a column without a time zone.
	rows, err := db.Query(ctx, `select version_id, tstamp::timestamptz from `+versionTable+` where is_applied`)
	if err != nil {
		return nil, err
	}
	var version int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
		applied[version] = at
		return nil
	})
	return applied, err
}

// tableExists asks the catalog, since a statement that fails would end the caller's transaction.
func tableExists(ctx context.Context, db Querier, name string) (exists bool, err error) {
	err = db.QueryRow(ctx, `select to_regclass($1) is not null`, name).Scan(&exists)
	return exists, err
}
