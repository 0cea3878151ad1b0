package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

type verifyCmd struct {
	Perspective string `arg:"" optional:"" help:"Perspective to verify; all without it."`
	Stream      string `placeholder:"KEY" help:"Verify only this stream."`
	Tenant      string `placeholder:"ID" help:"Tenant of the stream."`
	Sample      string `placeholder:"SHARE" help:"Verify only a random share of the streams, as 1% or 0.01."`
	From        string `placeholder:"STREAM-ID" help:"Go on from a stream, with which an interrupted verification ended."`
	Repair      bool   `help:"Have the streams built anew in which something is wrong."`
	Against     string `placeholder:"URL" help:"Compare the models with those of the perspective in another database instead."`
	JSON        bool   `name:"json" help:"Print JSON, one object per problem."`

	sample *float64
}

func (c *verifyCmd) Help() string {
	return `Folds every stream anew and compares, some hundred streams at a time. It runs beside workers and writers: each stream is judged at its
cursor's own place. With --repair, streams in which something is wrong are flagged, and workers build them anew; their models stay as they
are until then.`
}

// Validate is called when the command line is parsed.
func (c *verifyCmd) Validate() error {
	switch {
	case c.Stream != "" && c.Perspective == "":
		return errors.New("--stream needs a perspective")
	case c.Tenant != "" && c.Stream == "":
		return errors.New("--tenant needs --stream")
	case c.From != "" && c.Perspective == "":
		return errors.New("--from needs a perspective")
	case c.Against != "" && c.Perspective == "":
		return errors.New("--against needs a perspective")
	case c.Against != "" && (c.Stream != "" || c.Sample != "" || c.From != "" || c.Repair):
		return errors.New("--against compares all streams, and repairs nothing")
	case c.From != "" && (c.Stream != "" || c.Sample != ""), c.Sample != "" && c.Stream != "":
		return errors.New("only one of --stream, --sample and --from says what to verify")
	}
	if c.From != "" {
		if _, err := uuid.Parse(c.From); err != nil {
			return fmt.Errorf("--from is no stream id: %s", c.From)
		}
	}
	if c.Sample != "" {
		number, percent := strings.CutSuffix(c.Sample, "%")
		share, err := strconv.ParseFloat(number, 64)
		if percent {
			share /= 100
		}
		if err != nil || !(share > 0 && share <= 1) {
			return fmt.Errorf("--sample is a share as 1%% or 0.01, not %s", c.Sample)
		}
		c.sample = &share
	}
	return nil
}

type verifyProblem struct {
	PerspectiveName string          `json:"perspective_name"`
	StreamKey       *string         `json:"stream_key"`
	Problem         string          `json:"problem"`
	Expected        json.RawMessage `json:"expected"`
	Actual          json.RawMessage `json:"actual"`
	AppliedVersion  *int64          `json:"applied_version"`
}

// verifyTarget is a perspective and what its cursors hold.
type verifyTarget struct {
	Name    string
	InGo    bool
	Streams int64
	Events  int64
	Failed  int64
	Owing   int64 // streams whose repair is still to come
}

func verifyTargets(ctx context.Context, db querier, perspective string) ([]verifyTarget, error) {
	targets, err := queryRows[verifyTarget](ctx, db, `
		select p.perspective_name, p.apply is null, c.streams, c.events, c.failed, c.owing
		from rewind.perspectives p
		cross join lateral (
		  select count(*) as streams, coalesce(sum(c.events_applied), 0)::bigint as events,
		    count(*) filter (where c.status & 4 <> 0) as failed, count(*) filter (where c.status & 44 in (8, 32, 40)) as owing
		  from rewind.perspective_cursors c
		  where c.generation_id = p.active_generation
		) c
		where $1 in ('', p.perspective_name)
		order by p.perspective_name`, perspective)
	if err == nil && perspective != "" && len(targets) == 0 {
		err = fmt.Errorf("there is no perspective %q", perspective)
	}
	return targets, err
}

const (
	verifyStreams = 500 // that are verified in one transaction
	verifyShown   = 100 // problems that a person is shown
)

// verify returns what is wrong with a perspective, or with one stream of it.
func verify(ctx context.Context, pool *pgxpool.Pool, perspective, stream, tenant string) ([]verifyProblem, error) {
	return verifyPart(ctx, pool, perspective, stream, map[string]any{"tenant_id": tenant})
}

func verifyPart(ctx context.Context, pool *pgxpool.Pool, perspective, stream string, options map[string]any) ([]verifyProblem, error) {
	var key *string
	if stream != "" {
		key = &stream
	}
	return queryRows[verifyProblem](ctx, pool, `
		select perspective_name, stream_key, problem, expected, actual, applied_version
		from rewind.verify_perspective(p_perspective => $1, p_stream => $2, p_options => $3)`, perspective, key, jsonText(options))
}

// verifyInParts verifies the streams of a perspective from one on (a stream id, empty: all), each part in a transaction of its own. It calls
// each with what was found in a part and with how many streams were verified up to there; it returns where it ended if it failed.
func verifyInParts(ctx context.Context, pool *pgxpool.Pool, perspective, from string, options map[string]any,
	each func(streams int64, problems []verifyProblem) error,
) (string, error) {
	for streams := int64(verifyStreams); ; streams += verifyStreams {
		var to *string
		err := pool.QueryRow(ctx, `
			select (
			  select s.stream_id::text
			  from rewind.streams s
			  where s.tree_id = p.tree_id and ($2 = '' or s.stream_id >= nullif($2, '')::uuid)
			  order by s.stream_id
			  offset $3 limit 1
			)
			from rewind.perspectives p
			where p.perspective_name = $1`, perspective, from, verifyStreams).Scan(&to)
		if err != nil {
			return from, err
		}
		options["from_stream_id"], options["to_stream_id"] = from, to
		if from == "" {
			delete(options, "from_stream_id")
		}
		problems, err := verifyPart(ctx, pool, perspective, "", options)
		if err != nil {
			return from, err
		}
		if err := each(streams, problems); err != nil || to == nil {
			return from, err
		}
		from = *to
	}
}

func (c *verifyCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if c.Against != "" {
		return c.verifyAgainst(ctx, g, pool)
	}
	targets, err := verifyTargets(ctx, pool, c.Perspective)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		fmt.Fprintln(g.stderr, "nothing to verify: there are no perspectives")
		return nil
	}
	var remaining int64
	for _, target := range targets {
		r := verifyReport{cmd: c, g: g, target: target}
		if err := r.verify(ctx, pool); err != nil {
			return err
		}
		if err := r.end(); err != nil {
			return err
		}
		remaining += r.found - r.repaired
		if target.InGo {
			g.note("%s is folded in Go: its models are checked by the application that folds them, only counts and places were checked here",
				target.Name)
		}
	}
	if remaining > 0 {
		return errors.New(count(remaining, "problem"))
	}
	return nil
}

// verifyReport is what verifying a perspective finds.
type verifyReport struct {
	cmd    *verifyCmd
	g      *globals
	target verifyTarget

	found    int64
	repaired int64
	shown    []verifyProblem
}

func (r *verifyReport) verify(ctx context.Context, pool *pgxpool.Pool) error {
	options := map[string]any{"tenant_id": r.cmd.Tenant, "repair": r.cmd.Repair}
	if r.cmd.sample != nil {
		options["sample"] = *r.cmd.sample
	}
	if r.cmd.Stream != "" || r.cmd.sample != nil {
		problems, err := verifyPart(ctx, pool, r.target.Name, r.cmd.Stream, options)
		if err != nil {
			return err
		}
		return r.add(problems)
	}

	bar := r.g.progressBar(r.target.Streams, r.target.Name)
	defer bar.clear()
	from, err := verifyInParts(ctx, pool, r.target.Name, r.cmd.From, options, func(streams int64, problems []verifyProblem) error {
		bar.set(min(streams, r.target.Streams))
		return r.add(problems)
	})
	if err != nil && from != "" {
		r.g.note("%s was verified up to a stream: rewindworker verify %s --from %s goes on from there", r.target.Name, r.target.Name, from)
	}
	return err
}

func (r *verifyReport) add(problems []verifyProblem) error {
	r.found += int64(len(problems))
	for _, p := range problems {
		if r.cmd.Repair && p.Problem != "log" {
			r.repaired++
		}
	}
	if r.cmd.JSON {
		return printLines(r.g, problems)
	}
	r.shown = append(r.shown, problems[:min(len(problems), verifyShown-len(r.shown))]...)
	return nil
}

// end tells a person what was found.
func (r *verifyReport) end() error {
	if r.cmd.JSON {
		return nil
	}
	what := count(r.target.Streams, "stream") + ", " + count(r.target.Events, "event")
	var more string
	switch {
	case r.cmd.Stream != "":
		what = fmt.Sprintf("stream %s", r.cmd.Stream)
	case r.cmd.sample != nil:
		what = fmt.Sprintf("a sample of %.4g%% of %s", *r.cmd.sample*100, count(r.target.Streams, "stream"))
	case r.cmd.From != "":
		what = fmt.Sprintf("streams from %s on", r.cmd.From)
	default:
		if r.target.Failed > 0 {
			more = fmt.Sprintf("; %s failed before an event: see rewindworker doctor", count(r.target.Failed, "stream"))
		}
		if r.target.Owing > 0 {
			more += fmt.Sprintf("; %s with a repair to come", count(r.target.Owing, "stream"))
		}
	}
	result := "well"
	switch {
	case r.found > 0:
		result = count(r.found, "problem")
	case r.target.InGo:
		result = "counts and places are well"
	}
	if _, err := fmt.Fprintf(r.g.stdout, "%s: %s (%s)%s\n", r.target.Name, result, what, more); err != nil || r.found == 0 {
		return err
	}
	showProblems(r.g.stdout, r.shown)
	if more := r.found - int64(len(r.shown)); more > 0 {
		fmt.Fprintf(r.g.stdout, "and %d more, which --json lists\n", more)
	}
	if r.repaired > 0 {
		fmt.Fprintln(r.g.stdout, "done: what was wrong with streams is flagged or taken away; workers build them anew, after the debounce")
	}
	return nil
}

func showProblems(w io.Writer, problems []verifyProblem) {
	t := newTable(w, "stream", "problem", "expected", "actual", "applied version")
	for _, p := range problems {
		var stream string
		if p.StreamKey != nil {
			stream = *p.StreamKey
		}
		var version any = ""
		if p.AppliedVersion != nil {
			version = *p.AppliedVersion
		}
		expected, actual := differing(p.Expected, p.Actual)
		t.AppendRow([]any{stream, p.Problem, shorten(expected, 60), shorten(actual, 60), version})
	}
	t.Render()
}

// differing leaves out of two JSON objects what they have in common.
func differing(a, b json.RawMessage) (string, string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x == nil || y == nil {
		return string(a), string(b)
	}
	for key, value := range x {
		if bytes.Equal(value, y[key]) {
			delete(x, key)
			delete(y, key)
		}
	}
	return jsonText(x), jsonText(y)
}
