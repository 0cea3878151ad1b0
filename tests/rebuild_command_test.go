package tests

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// The commands about rebuilds say what they did, and exit accordingly.
func TestRebuildCommands(t *testing.T) {
	t.Parallel()
	program := rebuildProgram(t)
	w := newLoaded(t, 200, 10, map[string]any{"retry_backoff": "1m"})
	first := w.active("m")
	command := func(wantCode int, wantOutput string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append([]string{"--database-url", w.pool.Config().ConnString()}, args...)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if cmd.ProcessState.ExitCode() != wantCode || !strings.Contains(string(out), wantOutput) {
			t.Errorf("%v exits with %d: %s; want %d and %q", args, cmd.ProcessState.ExitCode(), out, wantCode, wantOutput)
		}
		return string(out)
	}
	command(2, "--streams go together", "perspective", "rebuild", "m", "--mode", "streams")
	command(2, "--tenant needs --streams", "perspective", "rebuild", "m", "--tenant", "x")
	command(2, "--mode is blue-green, in-place or streams, not sideways", "perspective", "rebuild", "m", "--mode", "sideways")
	command(1, `there is no perspective "nobody"`, "perspective", "rebuild", "nobody")
	command(1, "no generation to go back to", "perspective", "rollback", "m")
	command(1, "no rebuild", "perspective", "abort", "m")

	command(0, "rebuilt (blue-green): 10 streams, 200 events", "perspective", "rebuild", "m", "--verify")
	second := w.active("m")
	command(0, "rebuilt (in-place): 10 streams, 200 events", "perspective", "rebuild", "m", "--mode", "in-place", "--verify")
	command(0, "rebuilt (streams): 2 streams, 40 events", "perspective", "rebuild", "m", "--streams", "s1,s2", "--workers", "2")
	command(0, "shows the generation before", "perspective", "rollback", "m")
	if got := w.active("m"); got != first || first == second {
		t.Errorf("after the rollback generation %d is shown, not %d", got, first)
	}
	command(1, "has no generation 1000000", "perspective", "drop-generation", "m", "1000000")
	command(0, "dropped", "perspective", "drop-generation", "m", jsonOf(t, second))

	w.append("bad", testEvent{at: 1, v: 1})
	w.exec(`create function app.fails(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		begin if event.stream_key = 'bad' then raise exception 'bad is bad'; end if; return app.marked_2(model, event); end $$`)
	w.exec(`select from rewind.create_perspective('m', 't', 'app.fails(jsonb, rewind.event)', p_version => 2)`)
	command(1, "bad is bad", "perspective", "rebuild", "m")
	var status struct {
		Rebuilds []struct {
			State         string
			FailedStreams []struct {
				StreamKey string `json:"stream_key"`
			} `json:"failed_streams"`
		}
		Perspectives []struct{ State string }
	}
	if err := json.Unmarshal([]byte(command(0, "", "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Rebuilds) != 1 || status.Rebuilds[0].State != "failed" || len(status.Rebuilds[0].FailedStreams) != 1 ||
		len(status.Perspectives) != 2 || status.Perspectives[1].State != "building" {
		t.Errorf("status: %+v", status)
	}
	command(0, "failed", "status")
	command(0, "aborted", "perspective", "abort", "m")
	if got := w.active("m"); got != first {
		t.Errorf("generation %d is shown, not %d", got, first)
	}
}

// A rebuild that somebody held who went away is not held by the next one who leads it.
func TestRebuildIsHeldByWhoLeadsIt(t *testing.T) {
	t.Parallel()
	program := rebuildProgram(t)
	w := newLoaded(t, 200, 10, nil)
	w.exec(`select from rewind.begin_perspective_rebuild('m', p_options => '{"hold": true}')`)
	if out, err := exec.Command(program, "--database-url", w.pool.Config().ConnString(), "perspective", "rebuild", "m").CombinedOutput(); err != nil {
		t.Errorf("the rebuild ends with %v: %s", err, out)
	}
	w.verified("m", 0)
}

// A rebuild whose models are not the folds of their events when they are verified is not shown.
func TestRebuildVerifies(t *testing.T) {
	t.Parallel()
	program := rebuildProgram(t)
	w := newLoaded(t, 200, 10, nil)
	first := w.active("m")
	w.exec(`select from rewind.begin_perspective_rebuild('m', p_options => '{"hold": true}')`)
	second := queryOne[int](t, w.pool, `select max(generation_id) from rewind.perspective_generations`)
	for partition := range 4 {
		w.exec(`select from rewind.apply_perspective_batch('m', $1, p_generation => $2)`, partition, second)
	}
	w.exec(`update rewind.perspective_cursors set model = '{}' where generation_id = $1 and stream_id = (
		select stream_id from rewind.streams where stream_key = 's3')`, second)
	out, err := exec.Command(program, "--database-url", w.pool.Config().ConnString(), "perspective", "rebuild", "m", "--verify").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "verification found 1 problem") {
		t.Errorf("the rebuild ends with %v: %s", err, out)
	}
	if got := w.active("m"); got != first {
		t.Errorf("generation %d is shown, not %d", got, first)
	}
}
