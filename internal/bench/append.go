package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/rewindpg/rewind"
)

const (
	singleClients    = 8
	batchClients     = 4
	wakingClients    = 64
	batchEvents      = 1000
	streamsPerClient = 1000
	eventPayload     = `{"amount": 120, "currency": "EUR", "customer": "customer-17", "note": "left at the door"}`
	eventJSON        = `{"type": "placed", "payload": ` + eventPayload + `}`
)

func appendSingle(ctx context.Context, e *env) ([]Result, error) {
	thing, baseline, err := e.singleWriters(ctx)
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds,
		e.throughput(singleClients, thing), e.throughput(singleClients, baseline))
	if err != nil {
		return nil, err
	}
	return []Result{beside("append_single", "events/s", "prepared INSERT", values, baselines)}, nil
}

func appendBatch(ctx context.Context, e *env) ([]Result, error) {
	return appendBatches(ctx, e, "append_batch", 20)
}

func appendBatchWide(ctx context.Context, e *env) ([]Result, error) {
	return appendBatches(ctx, e, "append_batch_wide", batchEvents)
}

func appendBatches(ctx context.Context, e *env, name string, streams int) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	table, err := e.newPlainLog(ctx)
	if err != nil {
		return nil, err
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds,
		e.throughput(batchClients, func(client int) writer { return &batchWriter{tree: tree, client: client, streams: streams} }),
		e.throughput(batchClients, func(client int) writer { return &copyWriter{rows: newPlainRows(table, client), streams: streams} }))
	if err != nil {
		return nil, err
	}
	return []Result{beside(name, "events/s", "COPY", values, baselines)}, nil
}

// appendScaling compares how much faster many clients are than one.
func appendScaling(ctx context.Context, e *env) ([]Result, error) {
	thing, baseline, err := e.singleWriters(ctx)
	if err != nil {
		return nil, err
	}
	speedUp := func(writerOf func(client int) writer) measurement {
		return func(ctx context.Context) (float64, error) {
			one, err := e.writeFor(ctx, 1, e.scale.span, writerOf)
			if err != nil {
				return 0, err
			}
			many, err := e.writeFor(ctx, singleClients, e.scale.span, writerOf)
			return many / one, err
		}
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds, speedUp(thing), speedUp(baseline))
	if err != nil {
		return nil, err
	}
	return []Result{beside("append_scaling", "× of 1 client", "prepared INSERT", values, baselines)}, nil
}

// appendSnapshot compares appends while somebody has kept an old snapshot open with those before.
func appendSnapshot(ctx context.Context, e *env) ([]Result, error) {
	writerOf, _, err := e.singleWriters(ctx)
	if err != nil {
		return nil, err
	}
	without := func() (float64, error) { return e.writeFor(ctx, singleClients, e.scale.span, writerOf) }
	values, baselines := make(series, e.scale.longRounds), make(series, e.scale.longRounds)
	before, err := without()
	if err != nil {
		return nil, err
	}
	for i := range values {
		e.doing(fmt.Sprintf("round %d of %d", i+1, len(values)))
		if values[i], err = e.writeBesideSnapshot(ctx, writerOf); err != nil {
			return nil, err
		}
		after, err := without()
		if err != nil {
			return nil, err
		}
		baselines[i] = (before + after) / 2 // the machine's speed drifts in so long a time
		before = after
	}
	return []Result{beside("append_snapshot", "events/s", "before and after the snapshot", values, baselines)}, nil
}

// writeBesideSnapshot opens a snapshot, writes for as long as it takes to see what that does, and then measures.
func (e *env) writeBesideSnapshot(ctx context.Context, writerOf func(client int) writer) (float64, error) {
	conn, err := e.session(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `begin isolation level repeatable read; select count(*) from rewind.trees`); err != nil {
		return 0, err
	}
	if _, err := e.writeFor(ctx, singleClients, e.scale.snapshotAge, writerOf); err != nil {
		return 0, err
	}
	return e.writeFor(ctx, singleClients, e.scale.span, writerOf)
}

// wakeup compares appends that wake a worker with those that don't. In both cases one folds what is appended.
func wakeup(ctx context.Context, e *env) ([]Result, error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.newPerspective(ctx, tree, "bench.sum_up", "{}")
	if err != nil {
		return nil, err
	}
	stop, err := e.startWorker(ctx, p.name)
	if err != nil {
		return nil, err
	}
	event := []rewind.NewEvent{{Type: "placed", Payload: json.RawMessage(eventPayload)}}
	appends := func(db rewind.DBTX) measurement {
		return func(ctx context.Context) (float64, error) {
			return rate(ctx, wakingClients, e.scale.span, func(ctx context.Context, client int) (int, error) {
				_, err := rewind.Append(ctx, db, tree, fmt.Sprintf("stream-%d-%d", client, rand.IntN(streamsPerClient)), event)
				return 1, err
			})
		}
	}
	values, baselines, err := e.compare(ctx, e.scale.rounds, appends(e.pool), appends(silent{e.pool}))
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return []Result{beside("wakeup", "events/s", "wake-ups off", values, baselines)}, nil
}

// silent is a pool that appends don't know for one, so that they wake nobody.
type silent struct{ rewind.DBTX }

// singleWriters are those that write one event in a transaction, to a tree and to a table of the same shape.
func (e *env) singleWriters(ctx context.Context) (thing, baseline func(client int) writer, err error) {
	tree, err := e.newTree(ctx)
	if err != nil {
		return nil, nil, err
	}
	table, err := e.newPlainLog(ctx)
	if err != nil {
		return nil, nil, err
	}
	thing = func(client int) writer { return &singleWriter{tree: tree, client: client} }
	baseline = func(client int) writer { return &insertWriter{rows: newPlainRows(table, client)} }
	return e.once(thing), e.once(baseline), nil
}

func (e *env) newTree(ctx context.Context) (string, error) {
	tree := e.fresh("tree")
	return tree, e.exec(ctx, `select rewind.create_tree($1)`, tree)
}

// newPlainLog makes a table with the columns, constraints, indexes and settings of the log.
func (e *env) newPlainLog(ctx context.Context) (string, error) {
	table := "bench." + e.fresh("plain_log")
	return table, e.exec(ctx, fmt.Sprintf(`
		create table %[1]s (like rewind.wal including all);
		alter table %[1]s set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)`, table))
}

// writer writes a transaction and returns how many events that were.
type writer interface {
	write(ctx context.Context, conn *pgx.Conn) (events int, err error)
}

// throughput measures how many events so many clients write in a second, each on a connection of its own and as fast as it can. A
// client's writer stays the same through all rounds.
func (e *env) throughput(clients int, newWriter func(client int) writer) measurement {
	newWriter = e.once(newWriter)
	return func(ctx context.Context) (float64, error) { return e.writeFor(ctx, clients, e.scale.span, newWriter) }
}

// once makes each client's writer once.
func (e *env) once(newWriter func(client int) writer) func(client int) writer {
	var mu sync.Mutex
	writers := map[int]writer{}
	return func(client int) writer {
		mu.Lock()
		defer mu.Unlock()
		if writers[client] == nil {
			writers[client] = newWriter(client)
		}
		return writers[client]
	}
}

// writeFor lets clients write for a while and returns events per second.
func (e *env) writeFor(ctx context.Context, clients int, span time.Duration, writerOf func(client int) writer) (float64, error) {
	conns := make([]*pgx.Conn, clients)
	for client := range clients {
		conn, err := e.pool.Acquire(ctx)
		if err != nil {
			return 0, err
		}
		defer conn.Release()
		conns[client] = conn.Conn()
	}
	return rate(ctx, clients, span, func(ctx context.Context, client int) (int, error) {
		return writerOf(client).write(ctx, conns[client])
	})
}

// rate lets clients work for a while, each as fast as it can, and returns how much they all do in a second. Each first does a piece that
// isn't counted: statements are planned then.
func rate(
	ctx context.Context, clients int, span time.Duration, work func(ctx context.Context, client int) (done int, err error),
) (float64, error) {
	var ready sync.WaitGroup
	ready.Add(clients)
	total, took := make([]int, clients), make([]time.Duration, clients)
	group, ctx := errgroup.WithContext(ctx)
	for client := range clients {
		group.Go(func() error {
			_, err := work(ctx, client)
			ready.Done()
			if err != nil {
				return err
			}
			ready.Wait()
			begin := time.Now()
			for took[client] < span {
				done, err := work(ctx, client)
				if err != nil {
					return err
				}
				total[client] += done
				took[client] = time.Since(begin)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	sum := 0.0
	for client := range clients {
		sum += float64(total[client]) / took[client].Seconds()
	}
	return sum, nil
}

// singleWriter calls append_events with one event.
type singleWriter struct {
	tree   string
	client int
}

func (w *singleWriter) write(ctx context.Context, conn *pgx.Conn) (int, error) {
	rows, err := conn.Query(ctx, `select * from rewind.append_events($1, $2, $3)`, w.tree,
		fmt.Sprintf("stream-%d-%d", w.client, rand.IntN(streamsPerClient)), "["+eventJSON+"]")
	return drain(rows, err)
}

// drain reads rows without decoding them, and counts them.
func drain(rows pgx.Rows, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// batchWriter calls append_batch with events that go round some of its client's streams, and are other ones every time.
type batchWriter struct {
	tree    string
	client  int
	streams int
	next    int // stream
}

func (w *batchWriter) write(ctx context.Context, conn *pgx.Conn) (int, error) {
	streams, ids := make([]string, batchEvents), make([]uuid.UUID, batchEvents)
	types, payloads := make([]string, batchEvents), make([]string, batchEvents)
	for i := range batchEvents {
		id, err := uuid.NewV7()
		if err != nil {
			return 0, err
		}
		streams[i] = fmt.Sprintf("stream-%d-%d", w.client, (w.next+i%w.streams)%streamsPerClient)
		ids[i], types[i], payloads[i] = id, "placed", eventPayload
	}
	w.next = (w.next + w.streams) % streamsPerClient
	rows, err := conn.Query(ctx, `select * from rewind.append_batch($1, $2, $3, $4, $5::text[]::jsonb[])`,
		w.tree, streams, ids, types, payloads)
	return drain(rows, err)
}

// plainRows makes rows for a table of the log's shape, as a client would that knows offsets, versions and clocks by itself.
type plainRows struct {
	table    string
	client   int
	streams  []uuid.UUID
	versions []int64
	offset   int64
	cluster  uuid.UUID
}

func newPlainRows(table string, client int) *plainRows {
	r := &plainRows{table: table, client: client, versions: make([]int64, streamsPerClient), cluster: uuid.New()}
	for range streamsPerClient {
		r.streams = append(r.streams, uuid.New())
	}
	return r
}

var plainColumns = []string{
	"tree_id", "wal_partition", "wal_offset", "hlc", "stream_id", "stream_version", "event_id", "kind", "event_type", "payload",
	"origin_cluster", "appended_at",
}

func (r *plainRows) row(stream int) ([]any, error) {
	id, err := uuid.NewV7()
	r.offset++
	r.versions[stream]++
	now := time.Now()
	return []any{
		int32(1), int32(r.client), r.offset, now.UnixMilli() << 16, r.streams[stream], r.versions[stream], id, int16(6), "placed", eventPayload,
		r.cluster, now,
	}, err
}

// insertWriter inserts one row.
type insertWriter struct{ rows *plainRows }

func (w *insertWriter) write(ctx context.Context, conn *pgx.Conn) (int, error) {
	row, err := w.rows.row(rand.IntN(streamsPerClient))
	if err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, `
		insert into `+w.rows.table+` (tree_id, wal_partition, wal_offset, hlc, stream_id, stream_version, event_id, kind, event_type, payload,
		  origin_cluster, appended_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, row...)
	return 1, err
}

// copyWriter copies as many rows as a batch has.
type copyWriter struct {
	rows    *plainRows
	streams int
	next    int
}

func (w *copyWriter) write(ctx context.Context, conn *pgx.Conn) (int, error) {
	i := 0
	n, err := conn.CopyFrom(ctx, tableName(w.rows.table), plainColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == batchEvents {
			return nil, nil
		}
		i++
		return w.rows.row((w.next + i%w.streams) % streamsPerClient)
	}))
	w.next = (w.next + w.streams) % streamsPerClient
	return int(n), err
}
