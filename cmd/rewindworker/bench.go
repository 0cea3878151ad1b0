package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/rewindpg/rewind/internal/bench"
)

type benchCmd struct {
	JSON  bool     `name:"json" help:"Print JSON."`
	Only  []string `placeholder:"NAME" help:"Scenarios to run, or results to get."`
	Scale string   `default:"small" placeholder:"SCALE" help:"small takes 2 minutes, medium 25, large is for big machines (${default})."`
}

func (c *benchCmd) Help() string {
	return fmt.Sprintf(`Measures each thing beside its baseline, in turns, and prints medians over the rounds and their spread. It works in
databases of its own on the server, rewind_bench_*, which it drops: the user must have the right to create databases. Scenarios:
%s. Only if they are named: %s. What they mean: docs/performance.md.`,
		strings.Join(bench.Names(), ", "), strings.Join(bench.OnDemand(), ", "))
}

func (c *benchCmd) Run(ctx context.Context, g *globals) error {
	config := bench.Config{Only: c.Only, Scale: c.Scale}
	if err := config.Check(); err != nil {
		return usageError{err}
	}
	var err error
	if config.URL, err = g.openDatabase(ctx); err != nil {
		return err
	}
	clear := func() {}
	if isTerminal(g.stderr) {
		config.Progress = func(p bench.Progress) {
			fmt.Fprintf(g.stderr, "\r\x1b[K[%d/%d] %s: %s", p.Nth, p.Of, p.Scenario, p.Doing)
		}
		clear = func() { fmt.Fprint(g.stderr, "\r\x1b[K") }
	}
	report, err := bench.Run(ctx, config)
	clear()
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted"), err)
	}
	if c.JSON {
		return errors.Join(g.printJSON(report), err)
	}
	printReport(g.stdout, report)
	return err
}

func printReport(w io.Writer, report bench.Report) {
	if len(report.Results) == 0 {
		return
	}
	t := newTable(w, "name", "value", "unit", "baseline", "ratio", "spread", "rounds", "against")
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight},
	})
	for _, r := range report.Results {
		row := table.Row{r.Name, figure(r.Value), r.Unit, "", "", spread(r.Values), r.Rounds, r.Against}
		if r.Ratio != nil {
			row[3], row[4], row[5] = figure(*r.Baseline), figure(*r.Ratio), spread(r.Ratios)
		}
		t.AppendRow(row)
	}
	t.Render()
	s := report.Server
	settings := make([]string, 0, len(s.Settings))
	for name, value := range s.Settings {
		settings = append(settings, name+" "+value)
	}
	slices.Sort(settings)
	fmt.Fprintf(w, "\nMedians over the rounds; the spread is that of the ratio, or of the value where there is none.\n"+
		"Scale %s, PostgreSQL %s, %d cores here; %s.\n", report.Scale, s.Version, s.Cores, strings.Join(settings, ", "))
}

// figure is a number with three digits that matter, or all before the point.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

func spread(all []float64) string { return figure(slices.Min(all)) + "–" + figure(slices.Max(all)) }
