package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/schollz/progressbar/v3"

	"github.com/rewindpg/rewind/worker"
)

const (
	defaultRebuildWorkers = 4
	// rebuildConns are those that a rebuild takes beside its workers: for polls, rewinds, the claim of the rebuild, and the look at it.
	rebuildConns = 6
	// rebuildLineInterval is how often it is said how far a rebuild is, if not on a terminal.
	rebuildLineInterval = 5 * time.Second
	// patience is how long locks of others are waited for.
	patience = 20 * time.Second
	// rollbackInterval is how often a rollback is tried to be ended.
	rollbackInterval = 200 * time.Millisecond
)

type perspectiveRebuildCmd struct {
	Name    string   `arg:"" help:"Perspective."`
	Mode    string   `placeholder:"MODE" help:"blue-green: beside the models that are shown, until it is whole (the default). in-place: instead of them. streams: only those named by --streams."`
	Streams []string `placeholder:"KEY,..." help:"Streams to rebuild."`
	Tenant  string   `placeholder:"ID" help:"Tenant of the streams."`
	Verify  bool     `help:"Verify the models against the log; of a blue-green rebuild before they are shown."`
	Workers int      `placeholder:"N" help:"Batches at once (4)."`
	JSON    bool     `name:"json" help:"Print JSON."`
}

func (c *perspectiveRebuildCmd) Help() string {
	return `Makes a perspective's models anew from the log, while workers and writers go on. Running workers help, and go on with it if this command is
stopped; run it again to go on watching. The models that a blue-green rebuild replaced are kept: rewindworker perspective rollback.`
}

func (c *perspectiveRebuildCmd) check() error {
	switch {
	case !slices.Contains([]string{"", worker.BlueGreen, worker.InPlace, worker.SelectedStreams}, c.Mode):
		return fmt.Errorf("--mode is blue-green, in-place or streams, not %s", c.Mode)
	case c.Mode == "":
		c.Mode = worker.BlueGreen
		if len(c.Streams) > 0 {
			c.Mode = worker.SelectedStreams
		}
	case (c.Mode == worker.SelectedStreams) != (len(c.Streams) > 0):
		return errors.New("--mode streams and --streams go together")
	}
	switch {
	case c.Tenant != "" && len(c.Streams) == 0:
		return errors.New("--tenant needs --streams")
	case c.Workers < 0:
		return fmt.Errorf("--workers %d is not positive", c.Workers)
	case c.Workers == 0:
		c.Workers = defaultRebuildWorkers
	}
	return nil
}

func (c *perspectiveRebuildCmd) Run(ctx context.Context, g *globals) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	pool, err := g.connectWith(ctx, int32(c.Workers+rebuildConns))
	if err != nil {
		return err
	}
	defer pool.Close()
	perspectives, err := listPerspectives(ctx, pool, c.Name)
	if err != nil {
		return err
	}
	if len(perspectives) == 0 {
		return fmt.Errorf("there is no perspective %q", c.Name)
	}
	inGo := perspectives[0].Apply == nil
	if inGo {
		g.note("perspective %q is folded in Go: this waits for the workers of the application that folds it", c.Name)
	}
	w, err := worker.New(pool, worker.Config{Logger: g.logger, Concurrency: c.Workers, NoListening: true})
	if err != nil {
		return usageError{err}
	}
	request := worker.Rebuild{Perspective: c.Name, Mode: c.Mode, Streams: c.Streams, TenantID: c.Tenant}
	progress := newRebuildProgress(g, c.Name)
	request.Progress = progress.show
	if c.Verify && c.Mode == worker.BlueGreen {
		request.Check = func(ctx context.Context, generationID int) error {
			progress.clear()
			return c.verify(ctx, g, pool, &generationID)
		}
	}
	result, err := w.Rebuild(ctx, request)
	progress.clear()
	switch {
	case ctx.Err() != nil:
		if c.Verify {
			return errors.New("interrupted: run this command again, which goes on, verifies and shows what was built")
		}
		return errors.New("interrupted: this command goes on with the rebuild when it is run again, running workers that fold the perspective at once")
	case err != nil:
		return err
	}
	if c.Verify && c.Mode != worker.BlueGreen && result.State == "completed" {
		if err := c.verify(ctx, g, pool, nil); err != nil {
			result.State, result.Error = "failed", err.Error()
		}
	}
	return c.report(g, result)
}

// verify returns an error if a generation (nil: the active one) isn't well.
func (c *perspectiveRebuildCmd) verify(ctx context.Context, g *globals, pool *pgxpool.Pool, generationID *int) error {
	options := map[string]any{}
	if generationID != nil {
		options["generation_id"] = *generationID
	}
	g.note("verifying what was built of perspective %s", c.Name)
	var found int64
	var shown []verifyProblem
	if _, err := verifyInParts(ctx, pool, c.Name, "", options, func(_ int64, problems []verifyProblem) error {
		found += int64(len(problems))
		shown = append(shown, problems[:min(len(problems), verifyShown-len(shown))]...)
		return nil
	}); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if found == 0 {
		g.note("perspective %s is verified", c.Name)
		return nil
	}
	showProblems(g.stderr, shown)
	return fmt.Errorf("verification found %s", count(found, "problem"))
}

type rebuildResult struct {
	PerspectiveName string                `json:"perspective_name"`
	Mode            string                `json:"mode"`
	State           string                `json:"state"`
	Streams         int64                 `json:"streams"`
	Events          int64                 `json:"events"`
	Duration        string                `json:"duration"`
	FailedStreams   []worker.FailedStream `json:"failed_streams"`
	Error           *string               `json:"error"`
}

func (c *perspectiveRebuildCmd) report(g *globals, r worker.RebuildResult) error {
	var failure error
	if r.State != "completed" {
		failure = errors.New("the rebuild was aborted")
		if r.Error != "" {
			failure = fmt.Errorf("the rebuild failed: %s", r.Error)
		}
	}
	if c.JSON {
		out := rebuildResult{
			PerspectiveName: r.PerspectiveName, Mode: r.Mode, State: r.State, Streams: r.Streams, Events: r.Events,
			Duration: seconds(r.Duration.Seconds()), FailedStreams: r.FailedStreams,
		}
		if r.Error != "" {
			out.Error = &r.Error
		}
		return errors.Join(g.printJSON(out), failure)
	}
	if len(r.FailedStreams) > 0 {
		t := newTable(g.stdout, "stream", "event", "error")
		for _, f := range r.FailedStreams {
			var event any
			if f.EventID != nil {
				event = *f.EventID
			}
			t.AppendRow([]any{f.StreamKey, event, shorten(f.Error, 80)})
		}
		t.Render()
	}
	if failure == nil {
		_, err := fmt.Fprintf(g.stdout, "done: perspective %s rebuilt (%s): %s, %s in %s\n", r.PerspectiveName, r.Mode,
			count(r.Streams, "stream"), count(r.Events, "event"), seconds(r.Duration.Seconds()))
		return err
	}
	return failure
}

// rebuildProgress shows how far a rebuild is: as a bar on a terminal, else as lines.
type rebuildProgress struct {
	g     *globals
	name  string
	bar   *progressbar.ProgressBar
	begin time.Time
	first worker.RebuildProgress
	line  time.Time
}

func newRebuildProgress(g *globals, name string) *rebuildProgress {
	p := &rebuildProgress{g: g, name: name}
	if isTerminal(g.stderr) {
		p.bar = progressbar.NewOptions(1000, progressbar.OptionSetWriter(g.stderr), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(0))
	}
	return p
}

func (p *rebuildProgress) show(now worker.RebuildProgress) {
	if p.begin.IsZero() {
		p.begin, p.line, p.first = time.Now(), time.Now(), now
	}
	switch {
	case p.bar != nil:
		p.bar.Describe(p.text(now))
		_ = p.bar.Set(int(now.Share * 1000)) // what can't be shown is not missed
	case time.Since(p.line) >= rebuildLineInterval:
		p.line = time.Now()
		fmt.Fprintf(p.g.stderr, "%3.0f %% %s\n", now.Share*100, p.text(now))
	}
}

func (p *rebuildProgress) text(now worker.RebuildProgress) string {
	text := fmt.Sprintf("%s: %d of %d events, %s", p.name, now.Events, now.EventsTotal, count(now.Streams, "stream"))
	elapsed := time.Since(p.begin).Seconds()
	if done := now.Share - p.first.Share; done > 0 && elapsed >= 0.5 {
		text += fmt.Sprintf(", %.0f/s, %s left", float64(now.Events-p.first.Events)/elapsed,
			(time.Duration(elapsed * (1 - now.Share) / done * float64(time.Second))).Round(time.Second))
	}
	if now.WaitsFor != "" && now.Share == 1 {
		text += ", waits for " + now.WaitsFor
	}
	return text
}

func (p *rebuildProgress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear() // what can't be shown is not missed
	}
}

type perspectiveAbortCmd struct {
	Name string `arg:"" help:"Perspective."`
}

func (c *perspectiveAbortCmd) Run(ctx context.Context, g *globals) error {
	return g.actPatiently(ctx, fmt.Sprintf("the rebuild of perspective %s is aborted", c.Name),
		`select rewind.abort_perspective_rebuild(p_perspective => $1)`, c.Name)
}

type perspectiveRollbackCmd struct {
	Name    string        `arg:"" help:"Perspective."`
	Timeout time.Duration `default:"1m" help:"How long to wait for it (${default})."`
}

// Run begins the rollback and tries to end it, as running workers do.
func (c *perspectiveRollbackCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `select rewind.rollback_perspective(p_perspective => $1)`, c.Name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for {
		var state string
		var why *string
		err := pool.QueryRow(ctx, `
			select state, coalesce(error, waits_for) from rewind.perspective_rebuilds
			where perspective_name = $1 and mode = 'rollback' order by rebuild_id desc limit 1`, c.Name).Scan(&state, &why)
		switch {
		case err != nil:
			return err
		case state == "completed":
			_, err := fmt.Fprintf(g.stdout, "done: perspective %s shows the generation before\n", c.Name)
			return err
		case state != "running":
			return fmt.Errorf("the rollback is %s: %s", state, orElse(why, "somebody ended it"))
		}
		if _, err := pool.Exec(ctx, `select rewind.finish_perspective_rebuild(p_perspective => $1)`, c.Name); err != nil && !isPassing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the rollback goes on when the generation before is up to date; it waits for %s", orElse(why, "nothing"))
		case <-time.After(rollbackInterval):
		}
	}
}

type perspectiveDropGenerationCmd struct {
	Name       string `arg:"" help:"Perspective."`
	Generation int    `arg:"" help:"Generation, as status shows it."`
}

func (c *perspectiveDropGenerationCmd) Run(ctx context.Context, g *globals) error {
	return g.actPatiently(ctx, fmt.Sprintf("generation %d of perspective %s is dropped", c.Generation, c.Name),
		`select rewind.drop_perspective_generation(p_perspective => $1, p_generation => $2)`, c.Name, c.Generation)
}

// actPatiently is act for what others may be in the way of, for a while.
func (g *globals) actPatiently(ctx context.Context, what, statement string, args ...any) error {
	for began := time.Now(); ; {
		err := g.act(ctx, what, statement, args...)
		if !isPassing(err) || time.Since(began) > patience || ctx.Err() != nil {
			return err
		}
	}
}

// isPassing tells whether trying again helps: a lock was held, or others were in the way.
func isPassing(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains([]string{"55P03", "40P01", "40001"}, pgErr.Code)
}

// rebuildStatus is a rebuild in the output of status: those that run, and of each perspective the last.
type rebuildStatus struct {
	PerspectiveName string          `json:"perspective_name"`
	GenerationID    int             `json:"generation_id"`
	Mode            string          `json:"mode"`
	State           string          `json:"state"`
	WaitsFor        *string         `json:"waits_for"`
	Streams         int64           `json:"streams"`
	Events          int64           `json:"events"`
	EventsTotal     int64           `json:"events_total"`
	Share           float64         `json:"share"`
	FailedStreams   json.RawMessage `json:"failed_streams"`
	Error           *string         `json:"error"`
	StartedAt       time.Time       `json:"started_at"`
	CompletedAt     *time.Time      `json:"completed_at"`
}

const rebuildStatusQuery = `
select distinct on (perspective_name) perspective_name, generation_id, mode, state, waits_for, streams, events, events_total, share,
  failed_streams, error, started_at at time zone 'UTC', completed_at at time zone 'UTC'
from rewind.rebuild_progress
order by perspective_name, rebuild_id desc`

func printRebuilds(g *globals, rebuilds []rebuildStatus) {
	if len(rebuilds) == 0 {
		return
	}
	fmt.Fprintln(g.stdout)
	t := newTable(g.stdout, "rebuild of", "mode", "state", "streams", "events", "done", "started", "")
	for _, r := range rebuilds {
		why := orElse(r.Error, "")
		if r.WaitsFor != nil {
			why = strings.TrimSpace(why + " waits for " + *r.WaitsFor)
		}
		t.AppendRow([]any{r.PerspectiveName, r.Mode, r.State, r.Streams, r.Events, fmt.Sprintf("%.0f %%", r.Share*100), timeText(r.StartedAt), why})
	}
	t.Render()
}

func orElse(text *string, other string) string {
	if text == nil {
		return other
	}
	return *text
}
