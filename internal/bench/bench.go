// Package bench measures Rewind: each thing beside its baseline, in turns, in databases that it makes and drops.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config of a run.
type Config struct {
	// URL of any database of the server, as a user who may create databases. The database itself is only connected to.
	URL string
	// Only these scenarios, by their names or those of their results. Default: all that don't have to be named.
	Only []string
	// Scale is the name of one of the scales. Default: small.
	Scale string
	// Progress is told what is done next.
	Progress func(Progress)
}

// Progress is where a run is.
type Progress struct {
	Scenario string
	Nth, Of  int    // scenario
	Doing    string // what of it
	Database string // where
}

// Report is what a run found.
type Report struct {
	Scale   string   `json:"scale"`
	Server  Server   `json:"server"`
	Results []Result `json:"results"`
}

// scenario measures one thing, or several that belong together. A new one is a function and an entry in scenarios.
type scenario struct {
	name string
	// results are the names of what it brings, if it isn't one result of the same name.
	results []string
	// database is the name of the database that it shares with its neighbours of the same name in the list.
	database string
	// onDemand ones run only when they are named.
	onDemand bool
	measure  func(ctx context.Context, e *env) ([]Result, error)
}

// scenarios in the order in which they run.
var scenarios = []scenario{
	{name: "append_single", database: "append", measure: appendSingle},
	{name: "append_batch", database: "append", measure: appendBatch},
	{name: "append_batch_wide", database: "append", measure: appendBatchWide},
	{name: "append_scaling", database: "append", measure: appendScaling},
	{name: "append_snapshot", database: "append", measure: appendSnapshot},
	{name: "wakeup", database: "append", measure: wakeup},
	{name: "live_sql", results: []string{"live_sql", "live_sql_cold"}, database: "live", measure: liveSQL},
	{name: "live_go", database: "live", measure: liveGo},
	{name: "verify", database: "live", measure: verify},
	{name: "rebuild", results: []string{"rebuild", "rebuild_one"}, database: "live", measure: rebuild},
	{name: "feed", database: "live", measure: feedGo},
	{name: "feed_sql", results: []string{"feed_sql", "feed_sql_1000"}, database: "live", measure: feedSQL},
	{name: "feed_first", database: "live", measure: feedFirst},
	{name: "feed_last", database: "live", measure: feedLast},
	{name: "live_sql_short", results: []string{"live_sql_short", "live_sql_short_cold"}, database: "short", measure: liveSQLShort},
	{name: "late_20", results: []string{"late_20", "late_20_p99", "late_20_rate"}, database: "latency", measure: late20},
	{name: "latency", results: []string{"latency_p50", "latency_p99"}, database: "latency", measure: latency},
	{name: "idle", database: "latency", measure: idle},
	{name: "rewind_depth", results: rewindDepths(), database: "rewind", measure: rewindDepth},
	{name: "rewind_full", results: []string{"rewind_full", "rewind_full_wall"}, database: "rewind", measure: rewindFull},
	{name: "memory", results: []string{"memory_replay", "memory_feed"}, database: "rewind", measure: memory},
	{name: "storm", results: []string{"storm_0s", "storm_1s", "storm_6s"}, database: "storm", measure: storm},

	{
		name: "growth", onDemand: true, database: "growth", measure: growth,
		results: []string{
			"growth_events", "growth_streams", "growth_partitions_1", "growth_partitions_512",
			"growth_late_5", "growth_late_20", "growth_late_50", "growth_perspectives",
		},
	},
	{name: "hot_stream", results: []string{"hot_stream", "hot_stream_batch"}, onDemand: true, database: "growth", measure: hotStream},
	{
		name: "disk", results: []string{"disk_event", "disk_cursor", "disk_snapshot", "hot_updates", "bloat"},
		onDemand: true, database: "disk", measure: disk,
	},
}

// Names returns the names of all scenarios.
func Names() []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return names
}

// OnDemand returns the names of those that run only when they are named.
func OnDemand() []string {
	var names []string
	for _, s := range scenarios {
		if s.onDemand {
			names = append(names, s.name)
		}
	}
	return names
}

// ResultNames returns the names of the results of all scenarios.
func ResultNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.resultNames()...)
	}
	return names
}

// resultNames are the names of what a scenario brings.
func (s scenario) resultNames() []string {
	if s.results == nil {
		return []string{s.name}
	}
	return s.results
}

// Check tells whether a run of this configuration can begin.
func (c Config) Check() error {
	if _, err := scaleOf(c.Scale); err != nil {
		return err
	}
	_, err := c.selected()
	return err
}

func (c Config) selected() ([]scenario, error) {
	chosen := map[string]bool{}
	var picked []scenario
	for _, s := range scenarios {
		pick := len(c.Only) == 0 && !s.onDemand
		for _, name := range c.Only {
			if name == s.name || slices.Contains(s.resultNames(), name) {
				pick, chosen[name] = true, true
			}
		}
		if pick {
			picked = append(picked, s)
		}
	}
	for _, name := range c.Only {
		if !chosen[name] {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return picked, nil
}

// wants tells whether a result of a scenario was asked for.
func (c Config) wants(s scenario, result string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, s.name) || slices.Contains(c.Only, result)
}

// Run measures. What it found before an error, or before ctx ended, is in the report too.
func Run(ctx context.Context, config Config) (report Report, err error) {
	scale, err := scaleOf(config.Scale)
	if err != nil {
		return report, err
	}
	picked, err := config.selected()
	if err != nil {
		return report, err
	}
	report.Scale, report.Results = scale.name, []Result{}
	server, err := openServer(ctx, config.URL)
	if err != nil {
		return report, err
	}
	report.Server = server.Server

	var e *env // of the last scenario
	database := ""
	leave := func() (err error) {
		if e != nil {
			err = e.close(ctx)
			e = nil
		}
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	for i, s := range picked {
		doing := func(what string) {
			if config.Progress != nil {
				config.Progress(Progress{Scenario: s.name, Nth: i + 1, Of: len(picked), Doing: what, Database: e.name})
			}
		}
		if database != s.database {
			if err := leave(); err != nil {
				return report, err
			}
			if e, err = server.newEnv(ctx, scale); err != nil {
				return report, err
			}
			database = s.database
		}
		e.doing = doing
		doing("preparing")
		results, err := s.measure(ctx, e)
		if err != nil {
			return report, fmt.Errorf("%s: %w", s.name, err)
		}
		for _, r := range results {
			if config.wants(s, r.Name) {
				report.Results = append(report.Results, r)
			}
		}
	}
	return report, nil
}
