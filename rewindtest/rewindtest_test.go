package rewindtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/rewindtest"
	"github.com/rewindpg/rewind/worker"
)

func TestMain(m *testing.M) { testdb.Main(m) }

type account struct {
	Balance int `json:"balance"`
	Refused int `json:"refused"`

	lost int
}

func apply(a account, event rewind.Event) (account, error) {
	var amount int
	if err := json.Unmarshal(event.Payload, &amount); err != nil {
		return a, err
	}
	switch {
	case event.Type == "closed":
		return a, rewind.ErrNoModel
	case amount < 0 && a.Balance+amount < 0:
		a.Refused++
	default:
		a.Balance += amount
	}
	return a, nil
}

func amounts(amounts ...int) []rewind.NewEvent {
	var events []rewind.NewEvent
	for _, n := range amounts {
		events = append(events, rewind.NewEvent{Type: "moved", Payload: n})
	}
	return events
}

func TestFold(t *testing.T) {
	t.Parallel()
	p := worker.Perspective[account]{Apply: apply, EventTypes: []string{"moved", "closed"}}
	closed := rewind.NewEvent{Type: "closed", Payload: 0}
	other := rewind.NewEvent{Type: "other"}
	nine := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		events []rewind.NewEvent
		want   account
		none   bool
	}{
		"none":          {none: true},
		"one":           {events: amounts(5), want: account{Balance: 5}},
		"six":           {events: amounts(5, -3, -3, 10, -11, -1), want: account{Balance: 0, Refused: 1}},
		"many":          {events: amounts(1, 2, 3, 4, 5, -16, 6, 7, 8, 9, 10), want: account{Balance: 55, Refused: 1}},
		"closed":        {events: append(amounts(5), closed), none: true},
		"closed before": {events: append(append(amounts(5), closed), amounts(7)...), want: account{Balance: 7}},
		"other types":   {events: append(amounts(5), other), want: account{Balance: 5}},
		"given times": {
			events: []rewind.NewEvent{{Type: "moved", Payload: -5, Time: nine.Add(time.Hour)}, {Type: "moved", Payload: 5, Time: nine}},
			want:   account{Balance: 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, exists := rewindtest.Fold(t, p, c.events...)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(account{})); diff != "" || exists == c.none {
				t.Errorf("exists %v (-want +got):\n%s", exists, diff)
			}
		})
	}
}

func TestFoldFindsWhatDependsOnOrder(t *testing.T) {
	t.Parallel()
	calls := 0
	shared := map[string]int{}
	for name, fold := range map[string]func(testing.TB){
		"what JSON loses": func(t testing.TB) {
			rewindtest.Fold(t, worker.Perspective[account]{Apply: func(a account, _ rewind.Event) (account, error) {
				a.lost++
				a.Balance = a.lost
				return a, nil
			}}, amounts(1, 2, 3)...)
		},
		"something global": func(t testing.TB) {
			rewindtest.Fold(t, worker.Perspective[int]{Apply: func(int, rewind.Event) (int, error) {
				calls++
				return calls, nil
			}}, amounts(1, 2)...)
		},
		"a shared initial model": func(t testing.TB) {
			rewindtest.Fold(t, worker.Perspective[map[string]int]{
				Initial: func() map[string]int { return shared },
				Apply: func(m map[string]int, e rewind.Event) (map[string]int, error) {
					m["n"]++
					return m, nil
				},
			}, amounts(1, 2)...)
		},
		"Apply fails": func(t testing.TB) {
			rewindtest.Fold(t, worker.Perspective[int]{Apply: func(int, rewind.Event) (int, error) { return 0, errors.New("no") }}, amounts(1)...)
		},
		"an event without a type": func(t testing.TB) {
			rewindtest.Fold(t, worker.Perspective[int]{Apply: func(int, rewind.Event) (int, error) { return 0, nil }}, rewind.NewEvent{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if message := fatal(fold); message == "" {
				t.Error("the test passes")
			} else {
				t.Log(message)
			}
		})
	}
}

// fatal returns what a test ends with, empty if it passes.
func fatal(test func(testing.TB)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.message
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFoldSQL(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	for _, statement := range []string{
		`create schema app`,
		`create function app.account(model jsonb, event rewind.event) returns jsonb language sql immutable as $$
		  select case when event.event_type = 'closed' then null
		    when (event.payload)::int < 0 and coalesce((model -> 'balance')::int, 0) + (event.payload)::int < 0
		    then jsonb_build_object('balance', coalesce((model -> 'balance')::int, 0), 'refused', coalesce((model -> 'refused')::int, 0) + 1)
		    else jsonb_build_object('balance', coalesce((model -> 'balance')::int, 0) + (event.payload)::int, 'refused', coalesce((model -> 'refused')::int, 0))
		  end $$`,
		`create function app.clock(model jsonb, event rewind.event) returns jsonb language plpgsql immutable as $$
		  begin return to_jsonb(clock_timestamp()); end $$`,
	} {
		if _, err := pool.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	account := rewindtest.SQLFold{Apply: "app.account(jsonb, rewind.event)"}
	for name, c := range map[string]struct {
		events []rewind.NewEvent
		want   string
	}{
		"none":   {},
		"four":   {amounts(5, -3, -3, 10), `{"balance": 12, "refused": 1}`},
		"more":   {amounts(5, -3, -3, 10, -1, -1, -20), `{"balance": 10, "refused": 2}`},
		"closed": {append(amounts(5), rewind.NewEvent{Type: "closed"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rewindtest.FoldSQL(t, pool, account, c.events...); string(got) != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	for what, fold := range map[string]func(testing.TB){
		"the model is": func(t testing.TB) {
			rewindtest.FoldSQL(t, pool, rewindtest.SQLFold{Apply: "app.clock(jsonb, rewind.event)"}, amounts(1, 2)...)
		},
		"the fold raises": func(t testing.TB) {
			rewindtest.FoldSQL(t, pool, account, rewind.NewEvent{Type: "moved", Payload: "much"})
		},
		"does not exist": func(t testing.TB) {
			rewindtest.FoldSQL(t, pool, rewindtest.SQLFold{Apply: "app.none(jsonb, rewind.event)"}, amounts(1)...)
		},
	} {
		if message := fatal(fold); !strings.Contains(message, what) {
			t.Errorf("%q, want %q", message, what)
		}
	}
	var trees int
	if err := pool.QueryRow(context.Background(), `select count(*) from rewind.trees`).Scan(&trees); err != nil || trees != 1 {
		t.Errorf("%d trees are left, %v; want only that of system events", trees, err)
	}
}
