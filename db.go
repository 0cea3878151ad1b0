package rewind

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rewindpg/rewind/internal/db"
)

// DBTX is what every function of this package works on: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx. Any query execution mode of pgx
// will do, also those without prepared statements that a pooler in between may need.
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

var queries = db.New()
