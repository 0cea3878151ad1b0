package worker

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind/internal/testdb"
)

// Whatever way values come in, rowScanner scans what pgx does, and keeps it when the rows go on.
func TestRowScanner(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	type row struct {
		Number   int64
		Missing  *int64
		Found    *int64
		ID       *uuid.UUID
		Text     *string
		JSON     json.RawMessage
		Flag     *bool
		Smallint int16 // which it leaves to pgx
	}
	scan := func(mode pgx.QueryExecMode, columns string, by func(rows pgx.Rows, dest ...any) error) (all []row) {
		t.Helper()
		rows, err := pool.Query(t.Context(), `
			select n::bigint, null::bigint, -n::bigint, case when n % 3 > 0 then uuid_of(n) end, case when n % 5 > 0 then 'text ' || n end,
			  case when n % 7 > 0 then jsonb_build_object('n', n, 'long', repeat('x', n)) end, case when n % 2 > 0 then n % 4 = 1 end`+columns+`
			from generate_series(1, 1000) n`, mode)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var r row
			dest := []any{&r.Number, &r.Missing, &r.Found, &r.ID, &r.Text, &r.JSON, &r.Flag, &r.Smallint}
			if err := by(rows, dest[:len(rows.FieldDescriptions())]...); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		return all
	}
	if _, err := pool.Exec(t.Context(), `
		create function uuid_of(n int) returns uuid language sql immutable return md5(n::text)::uuid`); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for _, columns := range []string{"", ", n::smallint"} {
			t.Run(fmt.Sprint(mode, columns), func(t *testing.T) {
				want := scan(mode, columns, func(rows pgx.Rows, dest ...any) error { return rows.Scan(dest...) })
				var s rowScanner
				got := scan(mode, columns, func(rows pgx.Rows, dest ...any) error { return s.scan(rows, dest) })
				if diff := cmp.Diff(want, got); diff != "" || len(want) != 1000 {
					t.Errorf("%d rows (-pgx +rowScanner):\n%s", len(want), diff)
				}
			})
		}
	}
	rows, err := pool.Query(t.Context(), `select null::bigint`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var n int64
	if rows.Next() && new(rowScanner).scan(rows, []any{&n}) == nil {
		t.Error("NULL was scanned into a number")
	}
}
