// Command go keeps accounts. It writes a row of its own and an event in one transaction, folds accounts in Go, and reads what became
// of them. An account that has too little refuses a withdrawal, so that it matters what was paid in before. Usage: go DATABASE_URL.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

type account struct {
	Balance int `json:"balance"`
	Refused int `json:"refused"`
}

type amount struct {
	Amount int `json:"amount"`
}

func apply(a account, event rewind.Event) (account, error) {
	var p amount
	if err := json.Unmarshal(event.Payload, &p); err != nil {
		return a, err
	}
	switch {
	case event.Type == "paid_in":
		a.Balance += p.Amount
	case a.Balance < p.Amount:
		a.Refused++
	default:
		a.Balance -= p.Amount
	}
	return a, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go DATABASE_URL")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := rewind.CreateTree(ctx, pool, "accounts", rewind.DefaultPartitions); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `create table if not exists receipts (account text, amount int)`); err != nil {
		return err
	}
	w, err := worker.New(pool, worker.Config{})
	if err != nil {
		return err
	}
	// An application would call w.Run in a goroutine of its own, for as long as it lives.
	err = worker.Register(w, worker.Perspective[account]{Name: "account", Tree: "accounts", EventTypes: []string{"paid_in", "withdrawn"}, Apply: apply})
	if err != nil {
		return err
	}

	morning := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	if err := record(ctx, pool, "alice", "withdrawn", 30, morning.Add(time.Hour)); err != nil {
		return err
	}
	if err := show(ctx, pool, w, "alice"); err != nil {
		return err
	}
	// The bank's file comes at noon.
	if err := record(ctx, pool, "alice", "paid_in", 100, morning); err != nil {
		return err
	}
	return show(ctx, pool, w, "alice")
}

// record writes a receipt and the event, both or neither. The append comes last, since it holds the lock of the stream's partition.
func record(ctx context.Context, pool *pgxpool.Pool, key, what string, n int, at time.Time) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into receipts values ($1, $2)`, key, n); err != nil {
			return err
		}
		_, err := rewind.Append(ctx, tx, "accounts", key, []rewind.NewEvent{{Type: what, Time: at, Payload: amount{n}}})
		return err
	})
}

func show(ctx context.Context, pool *pgxpool.Pool, w *worker.Worker, key string) error {
	if err := w.RunUntilIdle(ctx); err != nil {
		return err
	}
	var a account
	if err := pool.QueryRow(ctx, `select model from lens.account where stream_key = $1`, key).Scan(&a); err != nil {
		return err
	}
	_, err := fmt.Printf("%s: balance %d, %d refused\n", key, a.Balance, a.Refused)
	return err
}
