package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const importAttempts = 10

type importCmd struct {
	Tree string `required:"" placeholder:"NAME" help:"Tree to append to; it is made if it isn't there."`
	File string `arg:"" help:"File with one event per line, as JSON, also compressed by gzip; - for standard input."`
	JSON bool   `name:"json" help:"Print JSON."`
}

type importResult struct {
	Events      int64 `json:"events"`
	New         int64 `json:"new"`
	Duplicates  int64 `json:"duplicates"`
	Quarantined int64 `json:"quarantined"`
	Streams     int64 `json:"streams"`
	treeMade    bool
}

func (c *importCmd) Help() string {
	return `A line is {"stream", "tenant_id"?, "event_id"? or "time"?, "type", "payload"?, "metadata"?}. A time is RFC 3339 text or a number
of milliseconds since 1970 (Unix time). All lines are checked before any is appended, and all are appended in one transaction. Events
with an id or a time are the same ones when the file is imported again; those with neither get the time of the import, and are new each time.`
}

func (c *importCmd) Run(ctx context.Context, g *globals) (err error) {
	file, err := openEventFile(c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()

	bar := g.progressBar(file.size, "checking")
	if err := file.check(ctx, pool, func(read int64) { bar.set(read) }); err != nil {
		bar.clear()
		return err
	}
	bar.clear()

	var result importResult
	for attempt := 1; ; attempt++ {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			result, err = c.appendAll(ctx, g, tx, file)
			return err
		})
		// Partitions can be taken in order for one tenant's streams only; with others in use, the next attempt may have them.
		var pgErr *pgconn.PgError
		if attempt == importAttempts || !errors.As(err, &pgErr) || pgErr.Code != "40001" {
			break
		}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return g.printJSON(result)
	}
	if result.treeMade {
		fmt.Fprintf(g.stdout, "tree %s made\n", c.Tree)
	}
	_, err = fmt.Fprintf(g.stdout, "done: %s of %s read from %s, %d new and appended, %d there already\n",
		count(result.Events, "event"), count(result.Streams, "stream"), file.name, result.New, result.Duplicates)
	if err == nil && result.Quarantined > 0 {
		_, err = fmt.Fprintf(g.stdout, "%s kept out by the quarantine: rewindworker quarantine list --all\n", count(result.Quarantined, "event"))
	}
	return err
}

func (c *importCmd) appendAll(ctx context.Context, g *globals, tx pgx.Tx, file *eventFile) (importResult, error) {
	staged, err := file.stage(ctx, tx, c.Tree)
	if err != nil {
		return importResult{}, err
	}
	made, err := ensureTree(ctx, tx, c.Tree)
	if err != nil {
		return importResult{}, err
	}
	if err := staged.lock(ctx, tx); err != nil {
		return importResult{}, err
	}
	bar := g.progressBar(staged.events, "appending")
	defer bar.clear()
	var done int64
	added, quarantined, err := staged.append(ctx, tx, 1, staged.events, func(events int64) {
		done += events
		bar.set(done)
	})
	if err != nil {
		return importResult{}, err
	}
	result := importResult{
		Events:      staged.events,
		New:         added,
		Duplicates:  staged.events - added - quarantined,
		Quarantined: quarantined,
		Streams:     staged.streams,
		treeMade:    made,
	}
	return result, staged.drop(ctx, tx)
}

// ensureTree makes a tree that isn't there, and tells whether it did. An existing one is found without rights on the tables.
func ensureTree(ctx context.Context, tx pgx.Tx, tree string) (made bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select rewind.lock_streams($1, '{}')`, tree)
		return err
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "RW005" {
		_, err = tx.Exec(ctx, `select rewind.create_tree($1)`, tree)
		return err == nil, err
	}
	return false, err
}

// progressBar shows how far something has come, on a terminal only.
func (g *globals) progressBar(total int64, what string) bar {
	var w io.Writer = io.Discard
	if file, ok := g.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		w = file
	}
	return bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)}
}

// bar is a progress bar. That it can't be drawn is no failure.
type bar struct{ bar *progressbar.ProgressBar }

func (b bar) set(n int64) { _ = b.bar.Set64(n) }
func (b bar) clear()      { _ = b.bar.Clear() }
