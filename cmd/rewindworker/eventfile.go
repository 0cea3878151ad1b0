package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxLineBytes   = 64 << 20
	batchLines     = 1000
	batchBytes     = 4 << 20
	maxBadLines    = 100
	maxShownErrors = 20
)

// eventFile is a file with an event in each line, read as often as wanted.
type eventFile struct {
	name string
	file *os.File
	size int64
}

// openEventFile opens a file; "-" is standard input, which is copied to a temporary file, since it can be read only once.
func openEventFile(name string) (*eventFile, error) {
	if name == "-" {
		return spool(os.Stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is a directory", name), file.Close())
	}
	if !info.Mode().IsRegular() { // a pipe by name
		f, err := spool(file)
		return f, errors.Join(err, file.Close())
	}
	return &eventFile{name: name, file: file, size: info.Size()}, nil
}

func spool(r io.Reader) (*eventFile, error) {
	file, err := os.CreateTemp("", "rewind-import-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil { // it lives until it is closed
		return nil, errors.Join(err, file.Close())
	}
	size, err := io.Copy(file, r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy the input: %w", err), file.Close())
	}
	return &eventFile{name: "standard input", file: file, size: size}, nil
}

func (f *eventFile) close() error { return f.file.Close() }

// line of a file, counted from 1.
type line struct {
	number int64
	text   string
}

// batches calls fn with the lines that aren't blank, some at a time, and with how far the file has been read. Compressed files are
// known by their first bytes.
func (f *eventFile) batches(fn func(batch []line, read int64) error) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	counted := &countingReader{r: f.file}
	buffered := bufio.NewReader(counted)
	var content io.Reader = buffered
	if head, _ := buffered.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		content = unzipped
	}
	scanner := bufio.NewScanner(content)
	scanner.Buffer(nil, maxLineBytes)

	var batch []line
	var size int
	var number int64
	for scanner.Scan() {
		number++
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		batch = append(batch, line{number, scanner.Text()})
		if size += len(scanner.Bytes()); len(batch) == batchLines || size >= batchBytes {
			if err := fn(batch, counted.n); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%s: line %d: %w", f.name, number+1, err)
	}
	if len(batch) == 0 {
		return nil
	}
	return fn(batch, counted.n)
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// badLine is a complaint about a line of a file.
type badLine struct {
	Line   int64
	Field  *string
	Reason string
}

// badLinesError refuses a file.
type badLinesError struct {
	file  string
	lines []badLine
}

func (e *badLinesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: bad lines, nothing was appended", e.file)
	for i, l := range e.lines {
		if i == maxShownErrors {
			fmt.Fprintf(&b, "\n  and %d more", len(e.lines)-i)
			break
		}
		fmt.Fprintf(&b, "\n  line %d: ", l.Line)
		if l.Field != nil {
			fmt.Fprintf(&b, "%s: ", *l.Field)
		}
		b.WriteString(l.Reason)
	}
	if len(e.lines) == maxBadLines {
		b.WriteString("\n  the rest of the file was not looked at")
	}
	return b.String()
}

// check finds the malformed lines of the file, up to a bound. progress gets how many bytes were read.
func (f *eventFile) check(ctx context.Context, pool *pgxpool.Pool, progress func(read int64)) error {
	var bad []badLine
	errEnough := errors.New("enough")
	err := f.batches(func(batch []line, read int64) error {
		found, err := malformed(ctx, pool, batch)
		if err != nil {
			return err
		}
		progress(read)
		if bad = append(bad, found...); len(bad) >= maxBadLines {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if len(bad) > 0 {
		return &badLinesError{f.name, bad[:min(len(bad), maxBadLines)]}
	}
	return nil
}

// The database judges, since it will be the one to take them.
const malformedQuery = `
with events as materialized (
  select l.number, l.text::jsonb as event
  from unnest($1::bigint[], $2::text[]) l(number, text)
)
select c.number, c.field, c.reason
from (
  select e.number, r.field, r.reason
  from events e
  cross join lateral jsonb_to_recordset(
    rewind._event_errors(
      case when jsonb_typeof(e.event) = 'object' then e.event - array['stream', 'tenant_id'] else e.event end, e.number)
  ) r(field text, reason text)
  union all
  select e.number, k.field,
    case
      when jsonb_typeof(e.event -> k.field) = 'string' then
        case when octet_length(e.event ->> k.field) > 500 then 'longer than 500 bytes' end
      when e.event ->> k.field is not null then 'not text'
      when k.field = 'stream' then 'missing'
    end
  from events e
  cross join (values ('stream'), ('tenant_id')) k(field)
  where jsonb_typeof(e.event) = 'object'
) c
where c.reason is not null
order by c.number, c.field
limit $3`

func malformed(ctx context.Context, pool *pgxpool.Pool, batch []line) ([]badLine, error) {
	numbers, texts := make([]int64, len(batch)), make([]string, len(batch))
	for i, l := range batch {
		numbers[i], texts[i] = l.number, l.text
	}
	rows, err := pool.Query(ctx, malformedQuery, numbers, texts, maxBadLines)
	if err != nil {
		return nil, err
	}
	bad, err := pgx.CollectRows(rows, pgx.RowToStructByPos[badLine])
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return bad, nil
	// Text that is no JSON, or that jsonb can't hold, fails as a whole: the culprits are found by halves.
	case !errors.As(err, &pgErr) || !strings.HasPrefix(pgErr.Code, "22") && !strings.HasPrefix(pgErr.Code, "54"):
		return nil, err
	case len(batch) == 1:
		reason := pgErr.Message
		if pgErr.Detail != "" {
			reason += ": " + pgErr.Detail
		}
		return []badLine{{Line: batch[0].number, Reason: reason}}, nil
	}
	for _, half := range [][]line{batch[:len(batch)/2], batch[len(batch)/2:]} {
		found, err := malformed(ctx, pool, half)
		if err != nil {
			return nil, err
		}
		if bad = append(bad, found...); len(bad) >= maxBadLines {
			break
		}
	}
	return bad, nil
}

// stagedEvents are the events of a file in a temporary table of a connection, in the order in which they are appended, with the ids
// that their times and contents give them.
type stagedEvents struct {
	file    *eventFile
	tree    string
	tenants []stagedTenant
	events  int64
	streams int64
}

// stagedTenant is the range of places of a tenant's events; an append is one tenant's.
type stagedTenant struct {
	TenantID string
	First    int64
	Last     int64
}

// rewind.event_id would check the same tenant and time again for each event, which takes ten times as long.
const stageQuery = `
create temporary table staged_events as
select
  row_number() over (order by t.first_line, e.number) as place,
  e.number, e.tenant_id, e.stream_key, e.event_type, e.payload, e.metadata, e.rank,
  case
    when e.event_id is not null then e.event_id
    when e.happened_at is not null then rewind._event_id(
      e.happened_at, e.rank::int, %s, e.tenant_id, e.stream_key, e.event_type, e.payload, e.metadata)
  end as event_id
from (
  select p.*,
    case when p.happened_at is not null then
      row_number() over (partition by p.tenant_id, p.stream_key, p.happened_at order by p.number) - 1
    end as rank
  from (
    select l.number, coalesce(l.event ->> 'tenant_id', '') as tenant_id, l.event ->> 'stream' as stream_key,
      (l.event ->> 'event_id')::uuid as event_id, rewind._parse_time(l.event -> 'time') as happened_at,
      l.event ->> 'type' as event_type, nullif(l.event -> 'payload', 'null') as payload, nullif(l.event -> 'metadata', 'null') as metadata
    from pg_temp.staged_lines l
    offset 0
  ) p
) e
join (
  select coalesce(l.event ->> 'tenant_id', '') as tenant_id, min(l.number) as first_line from pg_temp.staged_lines l group by 1
) t on t.tenant_id = e.tenant_id`

// maxRank is the last one that an event id has room for.
const maxRank = 1<<20 - 1

// stage loads the file, which has been checked. The tables go with the connection, or with a transaction that is rolled back; drop
// takes them away earlier.
func (f *eventFile) stage(ctx context.Context, db pgx.Tx, tree string) (*stagedEvents, error) {
	if _, err := db.Exec(ctx, `create temporary table staged_lines (number bigint not null, event jsonb not null)`); err != nil {
		return nil, err
	}
	err := f.batches(func(batch []line, _ int64) error {
		_, err := db.CopyFrom(ctx, pgx.Identifier{"pg_temp", "staged_lines"}, []string{"number", "event"},
			pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) {
				return []any{batch[i].number, json.RawMessage(batch[i].text)}, nil
			}))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", f.name, err)
	}
	var quotedTree string
	if err := db.QueryRow(ctx, `select quote_literal($1::text)`, tree).Scan(&quotedTree); err != nil {
		return nil, err
	}
	for _, statement := range []string{
		fmt.Sprintf(stageQuery, quotedTree),
		`drop table pg_temp.staged_lines`,
		`alter table pg_temp.staged_events add primary key (place)`,
	} {
		if _, err := db.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("stage %s: %w", f.name, err)
		}
	}

	s := &stagedEvents{file: f, tree: tree}
	rows, err := db.Query(ctx, `select tenant_id, min(place), max(place) from pg_temp.staged_events group by tenant_id order by 2`)
	if err != nil {
		return nil, err
	}
	if s.tenants, err = pgx.CollectRows(rows, pgx.RowToStructByPos[stagedTenant]); err != nil {
		return nil, err
	}
	var rank int64
	err = db.QueryRow(ctx, `
		select count(*), count(distinct (tenant_id, stream_key)), coalesce(max(rank), 0)
		from pg_temp.staged_events`).Scan(&s.events, &s.streams, &rank)
	if err == nil && rank > maxRank {
		err = fmt.Errorf("%s: a stream has more than %d events of the same time", f.name, maxRank+1)
	}
	return s, err
}

func (s *stagedEvents) drop(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `drop table pg_temp.staged_events`)
	return err
}

// try appends all events and takes that back, with the tree if it wasn't there.
func (s *stagedEvents) try(ctx context.Context, tx pgx.Tx) error {
	errTried := errors.New("tried")
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := ensureTree(ctx, tx, s.tree); err != nil {
			return err
		}
		if _, _, err := s.append(ctx, tx, 1, s.events, func(int64) {}); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// lock takes the locks of all partitions that append will write to.
func (s *stagedEvents) lock(ctx context.Context, tx pgx.Tx) error {
	for _, t := range s.tenants {
		_, err := tx.Exec(ctx, `
			select rewind.lock_streams($1, array_agg(distinct stream_key), jsonb_build_object('tenant_id', $2::text))
			from pg_temp.staged_events where place between $3 and $4`,
			s.tree, t.TenantID, t.First, t.Last)
		if err != nil {
			return err
		}
	}
	return nil
}

// append appends the events at places from up to to, and returns how many were new, and how many went into quarantine. progress gets
// how many were appended.
func (s *stagedEvents) append(ctx context.Context, tx pgx.Tx, from, to int64, progress func(events int64)) (added, quarantined int64, err error) {
	for _, t := range s.tenants {
		last := min(t.Last, to)
		for first := max(t.First, from); first <= last; first += batchLines {
			end := min(first+batchLines-1, last)
			a, q, err := s.appendBatch(ctx, tx, t.TenantID, first, end)
			if err != nil {
				return added, quarantined, err
			}
			added, quarantined = added+a, quarantined+q
			progress(end - first + 1)
		}
	}
	return added, quarantined, nil
}

func (s *stagedEvents) appendBatch(ctx context.Context, tx pgx.Tx, tenantID string, first, last int64) (added, quarantined int64, err error) {
	// Read before the append, because a failed transaction can't be asked any more which lines these are.
	var numbers []int64
	err = tx.QueryRow(ctx, `select array_agg(number order by place) from pg_temp.staged_events where place between $1 and $2`,
		first, last).Scan(&numbers)
	if err != nil {
		return 0, 0, err
	}
	err = tx.QueryRow(ctx, `
		select count(*) filter (where a.was_new), count(*) filter (where a.stream_version is null)
		from (
		  select
		    array_agg(stream_key order by place) as stream_keys, array_agg(event_id order by place) as event_ids,
		    array_agg(event_type order by place) as event_types, array_agg(payload order by place) as payloads,
		    array_agg(metadata order by place) as metadata
		  from pg_temp.staged_events where place between $3 and $4
		) b
		cross join lateral rewind.append_batch($1, b.stream_keys, b.event_ids, b.event_types, b.payloads, b.metadata,
		  jsonb_build_object('tenant_id', $2::text)) a`,
		s.tree, tenantID, first, last).Scan(&added, &quarantined)
	if bad := refusedLines(err, numbers); bad != nil {
		return 0, 0, &badLinesError{s.file.name, bad}
	}
	return added, quarantined, err
}

// refusedLines are the lines that an append complains about, which it names by their places in the call.
func refusedLines(err error, numbers []int64) []badLine {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return nil
	}
	var detail struct {
		Errors []struct {
			Index  int
			Reason string
		}
	}
	if json.Unmarshal([]byte(pgErr.Detail), &detail) != nil {
		return nil
	}
	var bad []badLine
	for _, e := range detail.Errors {
		if e.Index < 0 || e.Index >= len(numbers) {
			return nil
		}
		reason := pgErr.Message
		if e.Reason != "" {
			reason += ": " + e.Reason
		}
		bad = append(bad, badLine{Line: numbers[e.Index], Reason: reason + " (" + pgErr.Code + ")"})
	}
	return bad
}
