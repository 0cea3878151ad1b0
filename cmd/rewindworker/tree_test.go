package main

import (
	"context"
	"strings"
	"testing"
)

func TestTree(t *testing.T) {
	t.Parallel()
	database, pool := newCounted(t)
	move := func(args ...string) (r treeRow) {
		t.Helper()
		decode(t, runCommand(t, exitDone, append(append([]string{"tree"}, args...), "--json", database)...), &r)
		return r
	}
	if got, want := move("repartition", "t", "8"), (treeRow{"t", 2, 2, 8}); got != want {
		t.Errorf("repartitioned: %+v, want %+v", got, want)
	}
	exec(t, pool, `select from rewind.create_tree('next', 3)`)
	if got, want := move("repoint", "t", "next"), (treeRow{"t", 3, 10, 3}); got != want {
		t.Errorf("repointed: %+v, want %+v", got, want)
	}
	if text := runCommand(t, exitDone, "tree", "repartition", "t", "2", database); text != "done: tree t is appended to in 2 partitions from number 13 on, its generation 4\n" {
		t.Errorf("for people: %s", text)
	}

	runCommand(t, exitUsage, "tree", "repartition", "t", "many", database)
	for _, args := range [][]string{{"repartition", "t", "2"}, {"repartition", "nowhere", "2"}, {"repartition", "t", "2000"}, {"repoint", "t", "nowhere"}} {
		runFailing(t, append(append([]string{"tree"}, args...), database)...)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `select rewind.append_events('t', 'a', '[{"type": "x"}]')`); err != nil {
		t.Fatal(err)
	}
	if stderr := runFailing(t, "tree", "repartition", "t", "5", "--timeout=10ms", database); !strings.Contains(stderr, "a transaction that stays open") {
		t.Error(stderr)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(runCommand(t, exitDone, "status", database)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[1] == "t" && (fields[3] != "2" || fields[5] != "4") {
			t.Errorf("status: %s", line)
		}
	}
	runCommand(t, exitDone, "run", "--until-idle", database)
	runCommand(t, exitDone, "verify", database)
	if text := runCommand(t, exitDone, "feed", "tail", "t", "--json", database); strings.Count(text, "\n") != 4 {
		t.Errorf("the feed: %s", text)
	}
}
