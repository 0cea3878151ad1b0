package rewindtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/rewindpg/rewind"
)

// SQLFold is a fold in SQL.
type SQLFold struct {
	// Apply is the apply function, as create_perspective takes it: app.apply_order(jsonb, rewind.event).
	Apply string
	// Initial is the model of a stream without events. Default: {}.
	Initial any
	// EventTypes that matter. Default: all.
	EventTypes []string
}

// someSQLOrders of more than allSQLOrders events are tried, since each is a run in the database.
const (
	allSQLOrders  = 4
	someSQLOrders = 30
)

// FoldSQL does for a fold in SQL what [Fold] does for one in Go, in a database with Rewind's schema and the apply function: in a transaction
// that is rolled back, with a tree of its own. It returns the model as JSON, nil if there is none. With up to four events all orders are
// tried, else 30.
func FoldSQL(t testing.TB, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, f SQLFold, events ...rewind.NewEvent) json.RawMessage {
	t.Helper()
	ctx := context.Background()
	tx, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
	}()
	if f.Initial == nil {
		f.Initial = struct{}{}
	}
	name := "rewindtest-" + uuid.NewString()
	if err := rewind.CreateTree(ctx, tx, name, 1); err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(ctx, `
		select from rewind.create_perspective(p_name => $1, p_tree => $1, p_apply => $2::text::regprocedure, p_event_types => $3::text[],
		  p_initial => $4, p_options => '{"inline_rewind_events": 1000000}')`,
		name, f.Apply, f.EventTypes, string(encode(t, f.Initial)))
	if err != nil {
		t.Fatal(err)
	}
	happened := withIDs(t, events)
	inChronology(happened)
	run := sqlRun{tx: tx, name: name}
	natural := make([]int, len(happened))
	for i := range natural {
		natural[i] = i
	}
	want, err := run.arrive(ctx, happened, natural, max(1, len(happened)))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for order := range orders(len(happened)) {
		if tried++; tried > someSQLOrders && len(happened) > allSQLOrders {
			break
		}
		for _, size := range []int{1, 2, max(1, len(happened))} {
			got, err := run.arrive(ctx, happened, order, size)
			if err == nil && !equal(got, want) {
				err = fmt.Errorf("the model is %s, want %s", orNone(got), orNone(want))
			}
			if err != nil {
				t.Fatalf("events that arrive as %s in batches of %d: %v", places(order), size, err)
			}
		}
	}
	return want
}

// sqlRun is where events of a test arrive: a tree with a perspective of the same name.
type sqlRun struct {
	tx   pgx.Tx
	name string
}

// arrive appends events in an order, in batches that the perspective reads each, and takes all of it back.
func (r sqlRun) arrive(ctx context.Context, happened []rewind.NewEvent, order []int, size int) (model json.RawMessage, err error) {
	tx, err := r.tx.Begin(ctx) // a savepoint
	if err != nil {
		return nil, err
	}
	defer func() {
		if failure := tx.Rollback(ctx); err == nil {
			err = failure
		}
	}()
	for len(order) > 0 {
		size = min(size, len(order))
		batch := make([]rewind.NewEvent, size)
		for i, n := range order[:size] {
			batch[i] = happened[n]
		}
		order = order[size:]
		places, err := rewind.Append(ctx, tx, r.name, streamKey, batch)
		if err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, `select from rewind.apply_perspective_batch(p_perspective => $1, p_partition => $2, p_limit => $3)`,
			r.name, places[0].Partition, size)
		if err != nil {
			return nil, err
		}
	}
	var failure *string
	err = tx.QueryRow(ctx, `
		select c.model, c.error
		from rewind.perspectives p
		left join rewind.perspective_cursors c on c.generation_id = p.active_generation
		where p.perspective_name = $1`, r.name).Scan(&model, &failure)
	if err == nil && failure != nil {
		err = fmt.Errorf("the fold raises: %s", *failure)
	}
	return model, err
}
