package main

import (
	"math"
	"strings"
	"testing"

	"github.com/rewindpg/rewind/internal/bench"
	"github.com/rewindpg/rewind/internal/testdb"
)

// Every scenario works and brings what it says.
func TestBench(t *testing.T) {
	t.Parallel()
	url := testdb.NewEmptyURL(t)
	var report bench.Report
	all := strings.Join(bench.Names(), ",")
	decode(t, runCommand(t, exitDone, "bench", "--json", "--scale=tiny", "--only", all, "--database-url", url), &report)

	found := map[string]bench.Result{}
	for _, r := range report.Results {
		found[r.Name] = r
		figures := append(append(append([]float64{r.Value}, r.Values...), r.Ratios...), r.Baselines...)
		if r.Ratio != nil {
			figures = append(figures, *r.Ratio, *r.Baseline)
		}
		for _, figure := range figures {
			if math.IsNaN(figure) || math.IsInf(figure, 0) || figure <= 0 {
				t.Errorf("%s: a figure is %v", r.Name, figure)
			}
		}
		if r.Unit == "" || r.Rounds < 1 || len(r.Values) != r.Rounds ||
			(r.Ratio == nil) != (r.Baseline == nil) || (r.Ratio == nil) != (r.Against == "") {
			t.Errorf("%s is no whole result: %+v", r.Name, r)
		}
	}
	for _, name := range bench.ResultNames() {
		if _, ok := found[name]; !ok {
			t.Errorf("there is no result %s", name)
		}
	}
	if len(found) != len(bench.ResultNames()) || len(report.Results) != len(found) {
		t.Errorf("%d results of %d names, want %d", len(report.Results), len(found), len(bench.ResultNames()))
	}
	if report.Scale != "tiny" || report.Server.Settings["synchronous_commit"] != "on" || report.Server.Cores < 1 {
		t.Errorf("the report is of scale %s and server %+v", report.Scale, report.Server)
	}
}

func TestBenchOnly(t *testing.T) {
	t.Parallel()
	url := testdb.NewEmptyURL(t)
	output := runCommand(t, exitDone, "bench", "--scale=tiny", "--only=live_sql_cold", "--database-url", url)
	if !strings.Contains(output, "live_sql_cold") || strings.Contains(output, "live_sql ") ||
		!strings.Contains(output, "synchronous_commit on") {
		t.Error("the one result that was asked for is not what is printed:", output)
	}
	_, errors := runBoth(t, exitUsage, "bench", "--only=append_single,nonsense", "--database-url", url)
	if !strings.Contains(errors, `"nonsense"`) || !strings.Contains(errors, "append_single, append_batch, ") {
		t.Error("the error doesn't say what there is:", errors)
	}
	if _, errors := runBoth(t, exitUsage, "bench", "--scale=huge", "--database-url", url); !strings.Contains(errors, "small, medium, large") {
		t.Error("the error doesn't say which scales there are:", errors)
	}
}

// A user who may not create databases is told so.
func TestBenchWithoutRight(t *testing.T) {
	t.Parallel()
	url := testdb.NewEmptyURL(t)
	const role = "pg_read_all_data" // of every server
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	if errors := runFailing(t, "bench", "--scale=tiny", "--database-url", url+separator+"role="+role); !strings.Contains(errors, "createdb") {
		t.Error("the error doesn't say what is missing:", errors)
	}
}
