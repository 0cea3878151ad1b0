package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
)

func TestFeed(t *testing.T) {
	t.Parallel()
	url := testdb.NewURL(t)
	pool := testdb.Open(t, url)
	database := "--database-url=" + url
	exec(t, pool, `select rewind.create_tree('t', 2)`)
	for i := range 4 {
		exec(t, pool, fmt.Sprintf(`select rewind.append_events('t', 's%d', '[{"type": "type%d"}]')`, i, i%2))
	}
	tail := func(args ...string) (keys []string) {
		t.Helper()
		for line := range strings.Lines(runCommand(t, exitDone, append([]string{"feed", "tail", "t", "--json", database}, args...)...)) {
			var r rewind.Record
			decode(t, line, &r)
			if r.Tree != "t" || r.HLC == 0 {
				t.Errorf("%s became %+v", line, r)
			}
			keys = append(keys, r.StreamKey)
		}
		return keys
	}
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"default": {nil, 4}, "start": {[]string{"--from=start"}, 4}, "oldest": {[]string{"--from=oldest"}, 4}, "now": {[]string{"--from=now"}, 0},
		"time": {[]string{"--from=2020-01-01T00:00:00Z"}, 4}, "future": {[]string{"--from=2120-01-01T00:00:00Z"}, 0},
		"cursor": {[]string{`--from={"offsets": {"0": 0, "1": 0}}`}, 4}, "types": {[]string{"--types=type1,other"}, 2},
	} {
		if got := tail(c.args...); len(got) != c.want {
			t.Errorf("%s: %v, want %d records", name, got, c.want)
		}
	}
	if text := runCommand(t, exitDone, "feed", "tail", "t", database); strings.Count(text, "\n") != 4 || !strings.Contains(text, "type1") {
		t.Errorf("for people: %s", text)
	}

	exec(t, pool, `select rewind.create_feed_consumer('reports', 't', p_options => '{"lease": "1h"}')`)
	consumers := func() (c consumerStatus) {
		t.Helper()
		decode(t, runCommand(t, exitDone, "feed", "consumers", "--json", database), &c)
		return c
	}
	if c := consumers(); c.ConsumerName != "reports" || c.TreeName != "t" || c.LagRecords != 4 || !c.Live || c.LeftBehind {
		t.Errorf("consumers: %+v", c)
	}
	var s status
	decode(t, runCommand(t, exitDone, "status", "--json", database), &s)
	if len(s.Consumers) != 1 || s.Consumers[0].LagRecords != 4 {
		t.Errorf("consumers in the status: %+v", s.Consumers)
	}
	if text := runCommand(t, exitDone, "feed", "consumers", database); !strings.Contains(text, "reports") {
		t.Errorf("consumers for people: %s", text)
	}

	var r rewind.Trimmed
	decode(t, runCommand(t, exitDone, "feed", "trim", "t", "--before=now", "--json", database), &r)
	if len(r.HeldBy) != 1 || len(tail("--from=oldest")) != 4 {
		t.Errorf("trim with a consumer: %+v", r)
	}
	exec(t, pool, `select rewind.drop_feed_consumer('reports')`)
	end := strings.TrimSpace(runCommand(t, exitDone, "feed", "cursor", "t", database))
	runCommand(t, exitDone, "feed", "trim", "t", "--before="+end, database)
	if runCommand(t, exitFailed, "feed", "tail", "t", database); len(tail("--from="+end)) != 0 {
		t.Error("records after the end")
	}
	runCommand(t, exitUsage, "feed", "tail", "t", "--from=yesterday", database)
	runCommand(t, exitFailed, "feed", "tail", "nowhere", database)

	var epoch map[string]string
	decode(t, runCommand(t, exitDone, "new-epoch", "--json", database), &epoch)
	var cursor map[string]json.RawMessage
	decode(t, runCommand(t, exitDone, "feed", "cursor", "t", database), &cursor)
	if string(cursor["epoch"]) != `"`+epoch["store_epoch"]+`"` {
		t.Errorf("epoch %s in a cursor, %v was made", cursor["epoch"], epoch)
	}
	runCommand(t, exitFailed, "feed", "tail", "t", "--from="+end, database)
}
