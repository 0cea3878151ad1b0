package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

type demoResult struct {
	Events         int64 `json:"events"`
	Streams        int64 `json:"streams"`
	LateEvents     int64 `json:"late_events"`
	NewEvents      int64 `json:"new_events"`
	Duplicates     int64 `json:"duplicates"`
	Rewinds        int64 `json:"rewinds"`
	EventsReplayed int64 `json:"events_replayed"`
	Verified       bool  `json:"verified"`
}

func runDemo(t *testing.T, program, dir string, args ...string) (r demoResult) {
	t.Helper()
	output := run(t, program, append([]string{"demo", "--once", "--json", "--data-dir", dir}, args...)...)
	decoder := json.NewDecoder(strings.NewReader(output))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return r
}

// program builds rewindworker and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rewindworker")
	run(t, "go", "build", "-o", path, "../cmd/rewindworker")
	return path
}

// dataDir is a directory that the user who runs the server may enter, as t.TempDir is not.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rewind-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDemoStory(t *testing.T) {
	t.Parallel()
	program, dir := program(t), dataDir(t)
	output := run(t, program, "demo", "--data-dir", dir) // without a terminal it ends by itself
	for _, want := range []string{
		"status shipped → recall parcel", "repaired by a rewind: 4 events replayed from the beginning; equals the full replay",
		"repaired in its batch; equals the full replay", "and this run made 6 repairs in a batch", "every model equals the full replay",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the story lacks %q: %s", want, output)
		}
	}
	if n := strings.Count(output, "LATE"); n != 11 {
		t.Errorf("%d late events are shown, want 11", n)
	}
	want := demoResult{Events: 50, Streams: 10, LateEvents: 11, Duplicates: 50, Rewinds: 5, EventsReplayed: 20, Verified: true}
	if r := runDemo(t, program, dir); r != want {
		t.Errorf("again: %+v, want %+v", r, want)
	}
	if output := run(t, program, "demo", "--once", "--data-dir", dir); strings.Count(output, "nothing new") != 2 {
		t.Errorf("a run in which nothing is new doesn't say so: %s", output)
	}
}

func TestDemoFile(t *testing.T) {
	t.Parallel()
	program, dir := program(t), dataDir(t)
	file, late := commitsFile(t)
	first := runDemo(t, program, dir, "--file", file)
	want := demoResult{
		Events: 600, Streams: 3, LateEvents: late, NewEvents: 600, Rewinds: first.Rewinds, EventsReplayed: first.EventsReplayed, Verified: true,
	}
	if first != want || first.Rewinds == 0 || first.EventsReplayed < first.Rewinds {
		t.Errorf("%+v, want %+v with rewinds", first, want)
	}
	want.NewEvents, want.Duplicates = 0, 600
	if again := runDemo(t, program, dir, "--file", file); again != want {
		t.Errorf("again: %+v, want %+v", again, want)
	}
	if output := run(t, program, "status", "--data-dir", dir); !strings.Contains(output, "demo_commits_") {
		t.Errorf("status: %s", output)
	}

	// Real histories, where they are at hand.
	for name, want := range map[string]demoResult{
		"commits-a.ndjson": {Events: 1489, Streams: 10, LateEvents: 228},
		"commits-b.ndjson": {Events: 1473, Streams: 22, LateEvents: 267},
	} {
		file := filepath.Join("..", "..", "shared", "data", name)
		if _, err := os.Stat(file); err != nil {
			t.Logf("NOT TESTED with %s, which is not there", name)
			continue
		}
		r := runDemo(t, program, dir, "--file", file)
		if r.Events != want.Events || r.Streams != want.Streams || r.LateEvents != want.LateEvents || r.Rewinds == 0 || !r.Verified {
			t.Errorf("%s: %+v, want %+v with rewinds, verified", name, r, want)
		}
	}
}

// commitsFile writes 600 commits in three areas, about a sixth of them late, and counts the late ones.
func commitsFile(t *testing.T) (file string, late int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	newest := map[string]int64{}
	var lines strings.Builder
	for i := range 600 {
		area := []string{"lib", "doc", "test"}[i%3]
		at := time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC).UnixMilli()
		if random.IntN(6) == 0 {
			at -= int64(random.IntN(200)) * time.Hour.Milliseconds()
		}
		if at < newest[area] {
			late++
		}
		newest[area] = max(newest[area], at)
		fmt.Fprintf(&lines, `{"stream":%q,"type":"area_changed","time":%d,"payload":{"commit":"%04x","added":%d,"deleted":%d}}`+"\n",
			area, at, i, random.IntN(50), random.IntN(20))
	}
	file = filepath.Join(t.TempDir(), "commits.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, late
}

// Without --once the demo goes on, on a terminal, until it is interrupted, and that is no failure.
func TestDemoTrickle(t *testing.T) {
	t.Parallel()
	var stdout, stderr safeBuffer
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd := exec.CommandContext(t.Context(), program(t), "demo", "--data-dir", dataDir(t))
	cmd.Stdout, cmd.Stderr = tty, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := tty.Close(); err != nil {
		t.Error(err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&stdout, terminal) // fails when the other side is closed
		close(read)
	}()
	eventually(t, func() bool {
		_, live, found := strings.Cut(stdout.String(), "until you interrupt")
		return found && strings.Count(live, "order-") >= 3
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	<-read
	_, live, _ := strings.Cut(stdout.String(), "until you interrupt")
	for _, want := range []string{" new in this run, 0 there already", "every model equals the full replay", "select * from lens"} {
		if !strings.Contains(live, want) {
			t.Errorf("what it says in the end lacks %q: %s", want, live)
		}
	}
}

func TestDemoRefusesFiles(t *testing.T) {
	t.Parallel()
	program, dir := program(t), dataDir(t)
	const good = `{"stream":"a","type":"x","time":1}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":   {"\n", "bad.ndjson has no events"},
		"no_json": {good + "{", "bad lines"},
		"future":  {good + `{"stream":"a","type":"x","time":"2999-01-01T00:00:00Z"}`, "further in the future"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bad.ndjson")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr strings.Builder
			cmd := exec.CommandContext(t.Context(), program, "demo", "--json", "--data-dir", dir, "--file", file)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || stdout.String() != "" || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("%v: %s%s", err, stdout.String(), stderr.String())
			}
			if output := run(t, program, "status", "--data-dir", dir); strings.Contains(output, "demo_") {
				t.Errorf("it leaves something behind: %s", output)
			}
		})
	}
}

// safeBuffer is read while a program writes to it.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestDemoRefusesOtherDatabases(t *testing.T) {
	t.Parallel()
	program := program(t)
	cmd := exec.CommandContext(t.Context(), program, "demo", "--once", "--database-url=postgres://localhost/other")
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), "a server of its own") {
		t.Errorf("%v: %s", err, output)
	}
	// What the environment says is for the other commands.
	cmd = exec.CommandContext(t.Context(), program, "demo", "--once", "--json", "--data-dir", dataDir(t))
	cmd.Env = append(os.Environ(), "REWIND_DATABASE_URL=postgres://127.0.0.1:1/other")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
