package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuarantine(t *testing.T) {
	t.Parallel()
	database, _ := newCounted(t)
	runCommand(t, exitDone, "options", "--tree=t", "set", "skew_policy=quarantine", "lateness_horizon=24h", database)
	if got := runCommand(t, exitDone, "quarantine", "list", database); got != "no events in quarantine\n" {
		t.Error(got)
	}
	file := writeLines(t,
		`{"stream":"a","type":"x","time":"2200-01-01T00:00:00Z","payload":{"n":1}}`,
		`{"stream":"b","type":"x"}`,
		`{"stream":"b","type":"x","time":1000}`)
	var imported importResult
	decode(t, runCommand(t, exitDone, "import", "--tree=t", "--json", file, database), &imported)
	if want := (importResult{Events: 3, New: 1, Quarantined: 2, Streams: 2}); imported != want {
		t.Errorf("imported %+v, want %+v", imported, want)
	}
	if got := runCommand(t, exitDone, "import", "--tree=t", file, database); !strings.Contains(got, "1 new and appended, 0 there already\n2 events kept out by the quarantine: rewindworker quarantine list --all\n") {
		t.Error(got)
	}
	if got := runCommand(t, exitFailed, "doctor", database); !strings.Contains(got, "LOOK  2 events in quarantine: rewindworker quarantine list\n") {
		t.Error(got)
	}

	list := func(flags ...string) (all []quarantinedEvent) {
		t.Helper()
		for line := range strings.Lines(runCommand(t, exitDone, append([]string{"quarantine", "list", "--json", database}, flags...)...)) {
			var e quarantinedEvent
			decode(t, line, &e)
			all = append(all, e)
		}
		return all
	}
	states := func(events []quarantinedEvent) (states []string) {
		for _, e := range events {
			states = append(states, e.StreamKey+" "+e.Reason+" "+e.State)
		}
		return states
	}
	if diff := cmp.Diff([]string{"a RW004 held", "b RW015 held"}, states(list())); diff != "" {
		t.Fatal(diff)
	}
	if e := list("--tree=t")[0]; e.TreeName != "t" || e.EventType != "x" || string(e.Payload) != `{"n":1}` || e.QuarantinedAt.IsZero() {
		t.Errorf("listed %+v", e)
	}
	if all := list("--tree=other"); len(all) > 0 {
		t.Errorf("of another tree: %+v", all)
	}
	if got := runCommand(t, exitDone, "quarantine", "list", database); !strings.Contains(got, "RW004 further in the future than 00:01:00") {
		t.Error(got)
	}

	var released releasedEvent
	decode(t, runCommand(t, exitDone, "quarantine", "release", "1", "--json", database), &released)
	if released.QuarantineID != 1 || released.StreamVersion != 3 || !released.WasNew {
		t.Errorf("released %+v", released)
	}
	if got := runCommand(t, exitDone, "quarantine", "release", "1", database); got != "done: 0 events appended, 1 there already\n" {
		t.Error(got)
	}
	runCommand(t, exitUsage, "quarantine", "drop", "2", database)
	runCommand(t, exitFailed, "quarantine", "drop", "2", "1", "--reason=no", database)
	if n := len(list()); n != 1 {
		t.Errorf("%d events after a drop that failed, want 1", n)
	}
	if got := runCommand(t, exitDone, "quarantine", "drop", "2", "--reason=no", database); got != "done: 1 event will stay out of the log\n" {
		t.Error(got)
	}
	if all := list(); len(all) > 0 {
		t.Errorf("still held: %+v", all)
	}
	if diff := cmp.Diff([]string{"a RW004 released", "b RW015 dropped"}, states(list("--all"))); diff != "" {
		t.Error(diff)
	}
	eventID := list("--all")[1].EventID
	if got := runCommand(t, exitDone, "quarantine", "release", eventID, database); got != "done: 1 event appended, 0 there already\n" {
		t.Error(got)
	}
	if got := runCommand(t, exitDone, "quarantine", "list", "--all", database); !strings.Contains(got, eventID) {
		t.Error(got)
	}
	runCommand(t, exitFailed, "quarantine", "release", "018c0000-0000-7000-8000-000000000000", database)
	runCommand(t, exitUsage, "quarantine", "drop", "an event", "--reason=no", database)
	runCommand(t, exitFailed, "quarantine", "release", "7", database)
	runCommand(t, exitUsage, "quarantine", "release", database)
}
