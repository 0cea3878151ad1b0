// Command performance draws the charts of docs/performance.md and writes its tables, from the reports of rewindworker bench --json in its
// directory. Run it at the repository's root:
//
//	rewindworker bench --scale medium --json > docs/performance/usual.json
//	rewindworker bench --scale medium --only … --json > docs/performance/again.json (of what is taken out of usual.json)
//	rewindworker bench --scale medium --only hot_stream,disk --json > docs/performance/disk.json
//	rewindworker bench --only growth --json > docs/performance/growth.json
//	go run ./docs/performance
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rewindpg/rewind/internal/bench"
)

const (
	page   = "docs/performance.md"
	folder = "docs/performance"
)

func main() {
	files, err := generate(".")
	for path, text := range files {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// generate returns the files, by path, as they should be.
func generate(root string) (map[string]string, error) {
	results := map[string]bench.Result{}
	reports, err := filepath.Glob(filepath.Join(root, folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range reports {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var report bench.Report
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, r := range report.Results {
			if _, twice := results[r.Name]; twice {
				return nil, fmt.Errorf("%s: %s is in another report, too", path, r.Name)
			}
			results[r.Name] = r
		}
	}
	files := map[string]string{}
	path := filepath.Join(root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if files[path], err = fillTables(string(text), results); err != nil {
		return nil, err
	}
	for name, c := range charts {
		if files[filepath.Join(root, folder, name+".svg")], err = c.draw(results); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// marked is a place of the page that a table is written to, with the names of its results: those of the row before the table.
var marked = regexp.MustCompile(`(?s)<!-- results: ([a-z0-9_ ]+) -->\n.*?<!-- end -->`)

func fillTables(text string, results map[string]bench.Result) (string, error) {
	var err error
	text = marked.ReplaceAllStringFunc(text, func(place string) string {
		names := marked.FindStringSubmatch(place)[1]
		rows := []string{"| result | what | measured | baseline | ratio (spread) | aim |", "|---|---|---|---|---|---|"}
		for name := range strings.FieldsSeq(names) {
			r, ok := results[name]
			if !ok {
				err = errors.Join(err, fmt.Errorf("there is no result %s", name))
				continue
			}
			rows = append(rows, row(r))
		}
		return fmt.Sprintf("<!-- results: %s -->\n%s\n<!-- end -->", names, strings.Join(rows, "\n"))
	})
	return text, err
}

func row(r bench.Result) string {
	d := descriptions[r.Name]
	baseline, ratio := "", fmt.Sprintf("(%s–%s)", figure(slices.Min(r.Values)), figure(slices.Max(r.Values)))
	if r.Ratio != nil {
		baseline = figure(*r.Baseline) + " " + r.Against
		ratio = fmt.Sprintf("%s (%s–%s)", figure(*r.Ratio), figure(slices.Min(r.Ratios)), figure(slices.Max(r.Ratios)))
	}
	return fmt.Sprintf("| `%s` | %s | %s %s | %s | %s | %s |", r.Name, d.what, figure(r.Value), r.Unit, baseline, ratio, cmp.Or(d.aim, "–"))
}

// figure is a number with the digits that matter.
func figure(v float64) string {
	switch {
	case v >= 1000:
		unit := math.Pow10(int(math.Log10(v)) - 2)
		text := fmt.Sprintf("%.0f", math.Round(v/unit)*unit)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
