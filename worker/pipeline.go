package worker

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// beginStatement names the isolation level, since a database or a role may have another default.
	beginStatement  = `begin isolation level read committed`
	commitStatement = `commit`
)

// boundStatement bounds statements that run folds, unless the database, the role or the connection has a bound already: a fold that hangs
// must not hold its locks for ever.
const boundStatement = `select set_config('statement_timeout', '5min', true) where current_setting('statement_timeout') = '0'`

type batchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// pipeline runs each statement together with others before and after it, in one round trip: what a transaction needs is at the server
// before this process can be stopped or lose its connection.
type pipeline struct {
	sender        batchSender
	before, after []statement
}

type statement struct {
	sql  string
	args []any
}

// inTransaction runs each statement in a READ COMMITTED transaction of its own.
func inTransaction(sender batchSender) pipeline {
	return pipeline{sender, []statement{{sql: beginStatement}}, []statement{{sql: commitStatement}}}
}

// inBoundedTransaction is inTransaction for statements that run folds.
func inBoundedTransaction(sender batchSender) pipeline {
	return pipeline{sender, []statement{{sql: beginStatement}, {sql: boundStatement}}, []statement{{sql: commitStatement}}}
}

func (p pipeline) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	return tag, p.finish(results, err)
}

func (p pipeline) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		rows.Close()
		return nil, p.finish(results, err)
	}
	return &pipelineRows{Rows: rows, pipeline: p, results: results}, nil
}

func (p pipeline) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, sql, args...)
	return pipelineRow{rows, err}
}

// send returns the results with those of the statements before read.
func (p pipeline) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	batch := &pgx.Batch{}
	for _, s := range p.before {
		batch.Queue(s.sql, s.args...)
	}
	batch.Queue(sql, args...)
	for _, s := range p.after {
		batch.Queue(s.sql, s.args...)
	}
	results := p.sender.SendBatch(ctx, batch)
	for range p.before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // it says the same
			return nil, err
		}
	}
	return results, nil
}

// finish reads the results of the statements after.
func (p pipeline) finish(results pgx.BatchResults, err error) error {
	for range p.after {
		if err == nil {
			_, err = results.Exec()
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

// pipelineRows have been read only when the statements after have succeeded too.
type pipelineRows struct {
	pgx.Rows
	pipeline pipeline
	results  pgx.BatchResults
	scanner  rowScanner
	closed   bool
	err      error
}

func (r *pipelineRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *pipelineRows) Scan(dest ...any) error { return r.scanner.scan(r.Rows, dest) }

func (r *pipelineRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.Rows.Close()
	r.err = r.pipeline.finish(r.results, r.Rows.Err())
}

func (r *pipelineRows) Err() error {
	if r.closed {
		return r.err
	}
	return r.Rows.Err()
}

type pipelineRow struct {
	rows pgx.Rows
	err  error
}

func (r pipelineRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
