package main

import (
	"testing"

	"github.com/rewindpg/rewind/internal/testdb"
)

func TestRunUntilIdle(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "x"}]')`)
	runCommand(t, exitDone, "run", "--until-idle", database)
	var count int
	if err := pool.QueryRow(t.Context(), `select sum((model ->> 'n')::int) from lens.tally`).Scan(&count); err != nil || count != 4 {
		t.Errorf("%d events counted, want 4: %v", count, err)
	}

	exec(t, pool, `select rewind.append_events('t', 'a', '[{"type": "poison"}]')`)
	runCommand(t, exitDone, "perspective", "create", "other", "--tree=t", "--apply=app.tally", "--event-type=x", database)
	runCommand(t, exitDone, "run", "--until-idle", "--perspective=other", database)
	runCommand(t, exitFailed, "run", "--until-idle", database)
}

func TestRunRefusals(t *testing.T) {
	t.Parallel()
	runCommand(t, exitSchema, "run", "--until-idle", "--database-url="+testdb.NewEmptyURL(t))
	runCommand(t, exitUsage, "run", "--until-idle", "--batch-size=-1", "--database-url="+testdb.NewURL(t))
}
