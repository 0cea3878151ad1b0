package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
)

// Each query lists what breaks a rule that all routines of schema rewind keep.
var catalogRules = map[string]string{
	"pins_search_path": `
		select oid::regprocedure::text from pg_proc
		where pronamespace = 'rewind'::regnamespace and prokind <> 'a'
		  and not 'search_path=pg_catalog, pg_temp' = any (coalesce(proconfig, '{}'))
		  and prosqlbody is null
		  -- A procedure that commits can't have settings.
		  and not (prokind = 'p' and proconfig is null and prosrc ~ '\mcommit\M')`,
	"is_commented": `
		select oid::regprocedure::text from pg_proc
		where pronamespace = 'rewind'::regnamespace and obj_description(oid, 'pg_proc') is null`,
	"has_no_overloads": `
		select proname from pg_proc where pronamespace = 'rewind'::regnamespace group by proname having count(*) > 1`,
	"is_not_for_public": `
		select oid::regprocedure::text from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) acl
		where pronamespace = 'rewind'::regnamespace and acl.grantee = 0`,
	// Every role may call internals that run with its own rights; of the others only those that fold or administer.
	"internal_with_the_owners_rights_is_not_for_all": `
		select oid::regprocedure::text from pg_proc, aclexplode(proacl) acl
		where pronamespace = 'rewind'::regnamespace and starts_with(proname, '_') and prosecdef
		  and acl.grantee = any (array['rewind_reader', 'rewind_writer']::regrole[])`,
	"is_for_some_role": `
		select oid::regprocedure::text from pg_proc
		where pronamespace = 'rewind'::regnamespace and not starts_with(proname, '_')
		  and prorettype <> 'trigger'::regtype
		  and not exists (
		    select from aclexplode(proacl) acl
		    where acl.grantee = any (array['rewind_reader', 'rewind_writer', 'rewind_worker', 'rewind_admin']::regrole[]))`,
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	for rule, query := range catalogRules {
		t.Run(rule, func(t *testing.T) {
			for _, offender := range texts(t, pool, query) {
				t.Error(offender)
			}
		})
	}
}

// PL/pgSQL is hardly checked when a function is created. What dynamic SQL brings back can't be known without running it. Labels of volatility
// are ours where they say more than those of what is called: an error's text is no result, convert_to is stable for no reason that counts
// here, and whether a server is a standby doesn't change within a statement.
func TestPlpgsqlCheck(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	if len(texts(t, pool, `select name::text from pg_available_extensions where name = 'plpgsql_check'`)) == 0 {
		missing(t, "the extension plpgsql_check on the server")
		return
	}
	mustExec(t, pool, `create extension plpgsql_check`)
	// Trigger functions are checked for each table that they are on.
	for _, problem := range texts(t, pool, `
		select format('%s: %s: %s, line %s: %s', p.oid::regprocedure, c.level, coalesce(c.statement, 'function'), c.lineno, c.message)
		from pg_proc p
		join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
		left join pg_trigger g on g.tgfoid = p.oid
		cross join lateral plpgsql_check_function_tb(p.oid, coalesce(g.tgrelid, 0)) c
		where p.pronamespace = 'rewind'::regnamespace
		  and c.message <> 'cannot determinate a result of dynamic SQL'
		  and not (c.message like 'routine is marked as %, but expression is %'
		    and (c.statement = 'RAISE' or starts_with(p.proname, '_refuse_')
		      or p.proname in ('event_id', 'stream_id', '_feed_ranges', '_parse_feed_cursor')))`) {
		t.Error(problem)
	}
}

// texts returns the rows of a query that has one text column.
func texts(t *testing.T, pool *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
