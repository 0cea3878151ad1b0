package testdb

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// SetClock stops the clock of a database at a time: rewind._now() says so from then on.
func SetClock(t testing.TB, pool *pgxpool.Pool, now time.Time) {
	t.Helper()
	clock(t, pool, `
		create table if not exists rewind_gen.test_clock (singleton boolean primary key default true, now timestamptz not null)`)
	clock(t, pool, `
		insert into rewind_gen.test_clock (now) values ($1) on conflict (singleton) do update set now = excluded.now`, now)
	clock(t, pool, `
		create or replace function rewind._now() returns timestamptz
		  language sql volatile parallel safe security definer set search_path = pg_catalog, pg_temp
		  as 'select now from rewind_gen.test_clock'`)
}

// Advance moves a clock that SetClock stopped.
func Advance(t testing.TB, pool *pgxpool.Pool, by time.Duration) {
	t.Helper()
	clock(t, pool, `update rewind_gen.test_clock set now = now + $1::interval`, by)
}

func clock(t testing.TB, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal("testdb: set the clock:", err)
	}
}
