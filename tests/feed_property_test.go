package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/rewindpg/rewind"
)

// Appends that commit, roll back and stay open, trims, moves of the tree, readers that stop and go on anywhere: resumed from the cursor of any record, the feed has
// exactly what it had after that record, and in the end what a reader saw is what was committed, each once.
func TestPropertyFeedResumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		partitions := rapid.SampledFrom([]int{1, 2, 7}).Draw(rt, "partitions")
		pool := newFeed(t, partitions)
		defer pool.Close()
		open := make(map[string]pgx.Tx) // by stream: a stream is open in one of them at most
		committed := map[string]int{}
		seen := map[string]int{}
		var at rewind.Cursor
		stream := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("s", rapid.IntRange(0, 9).Draw(rt, "stream")) })
		end := func(key string, commit bool) {
			tx := open[key]
			if tx == nil {
				return
			}
			delete(open, key)
			if !commit {
				if err := tx.Rollback(ctxOf(t)); err != nil {
					rt.Fatal(err)
				}
				return
			}
			if err := tx.Commit(ctxOf(t)); err != nil {
				rt.Fatal(err)
			}
			committed[key]++
		}
		defer func() {
			for key := range open {
				end(key, false)
			}
		}()
		read := func(most int) {
			n := 0
			for r, err := range rewind.Subscribe(ctxOf(t), pool, "t", at) {
				if err != nil {
					rt.Fatal(err)
				}
				at = r.Cursor()
				seen[r.StreamKey]++
				if n++; n == most {
					break
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				key := stream.Draw(rt, "key")
				tx, err := pool.Begin(ctxOf(t))
				if err != nil {
					rt.Fatal(err)
				}
				// In a partition that another one holds open it would wait.
				var free bool
				if err := tx.QueryRow(ctxOf(t), `
					select pg_try_advisory_xact_lock(1381433344 + tree_id, rewind._stream_partition(rewind.stream_id('t', $1), first_partition, partitions))
					from rewind.trees where tree_name = 't'`, key).Scan(&free); err != nil {
					rt.Fatal(err)
				}
				if !free {
					if err := tx.Rollback(ctxOf(t)); err != nil {
						rt.Fatal(err)
					}
					return
				}
				if _, err := rewind.Append(ctxOf(t), tx, "t", key, []rewind.NewEvent{{Type: "happened"}}); err != nil {
					rt.Fatal(err)
				}
				open[key] = tx
			},
			"commit":   func(rt *rapid.T) { end(stream.Draw(rt, "key"), true) },
			"rollback": func(rt *rapid.T) { end(stream.Draw(rt, "key"), false) },
			"read":     func(rt *rapid.T) { read(rapid.IntRange(1, 20).Draw(rt, "most")) },
			"read page": func(rt *rapid.T) {
				rows, err := pool.Query(ctxOf(t), `select stream_key, next_cursor from rewind.read_feed('t', $1, p_limit => $2)`, at, rapid.IntRange(1, 10).Draw(rt, "limit"))
				if err != nil {
					rt.Fatal(err)
				}
				for rows.Next() {
					var key string
					var next *json.RawMessage
					if err := rows.Scan(&key, &next); err != nil {
						rt.Fatal(err)
					}
					seen[key]++
					if next != nil {
						if err := json.Unmarshal(*next, &at); err != nil {
							rt.Fatal(err)
						}
					}
				}
				if err := rows.Err(); err != nil {
					rt.Fatal(err)
				}
			},
			"move": func(rt *rapid.T) {
				for key := range open { // or it would wait for them
					end(key, rapid.Bool().Draw(rt, "commit"))
				}
				moveTree(t, pool, rapid.IntRange(1, 8).Draw(rt, "to"))
			},
			"trim": func(rt *rapid.T) {
				if _, err := rewind.TrimTree(ctxOf(t), pool, "t", at); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				oldest, err := rewind.OldestCursor(ctxOf(t), pool, "t")
				if err != nil {
					rt.Fatal(err)
				}
				all := spots(t, rewind.Subscribe(ctxOf(t), pool, "t", oldest))
				if len(all) == 0 {
					return
				}
				nth := rapid.IntRange(0, len(all)-1).Draw(rt, "nth")
				i := 0
				for r, err := range rewind.Subscribe(ctxOf(t), pool, "t", oldest) {
					if err != nil {
						rt.Fatal(err)
					}
					if i == nth {
						if got := spots(t, rewind.Subscribe(ctxOf(t), pool, "t", r.Cursor())); !slices.Equal(got, all[nth+1:]) {
							rt.Fatalf("after record %d: %v in Go, want %v", nth, got, all[nth+1:])
						}
						if got := sqlFeed(t, pool, r.Cursor(), nil, rapid.IntRange(1, 10).Draw(rt, "page"), `{}`); !slices.Equal(got, all[nth+1:]) {
							rt.Fatalf("after record %d: %v in SQL, want %v", nth, got, all[nth+1:])
						}
						break
					}
					i++
				}
			},
		})
		for key := range open {
			end(key, true)
		}
		read(-1)
		for key, n := range committed {
			if seen[key] != n {
				rt.Fatalf("stream %s: %d records were seen, %d committed", key, seen[key], n)
			}
		}
		if len(seen) > len(committed) {
			rt.Fatalf("records of %d streams were seen, of %d committed", len(seen), len(committed))
		}
	})
}

// 64 writers with random rollbacks, one reader that polls pages in SQL, one that follows in Go: what each saw is what was committed, each once.
func TestFeedUnderAStorm(t *testing.T) {
	t.Parallel()
	pool := newFeed(t, 16)
	const writers, rounds = 64, 12
	var committed atomic.Int64
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 0))
			for i := range rounds {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				n := 1 + r.IntN(3)
				if _, err := rewind.Append(t.Context(), tx, "t", fmt.Sprint("s", r.IntN(200)), slices.Repeat([]rewind.NewEvent{{Type: fmt.Sprint(w, "/", i)}}, n)); err != nil {
					t.Error(err)
				}
				if r.IntN(5) == 0 {
					err = tx.Rollback(t.Context())
				} else if err = tx.Commit(t.Context()); err == nil {
					committed.Add(int64(n))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var total atomic.Int64 // once it is known
	polled, followed := map[spot]int{}, map[spot]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		var cursor json.RawMessage
		for n := int64(0); ctx.Err() == nil && (total.Load() == 0 || n < total.Load()); {
			page, next := sqlPage(t, pool, cursor, nil, 50, `{}`)
			for _, s := range page {
				polled[s]++
				n++
			}
			if len(page) > 0 {
				cursor = next
			}
		}
	})
	reading.Go(func() {
		n := int64(0)
		for r, err := range rewind.Follow(ctx, pool, "t", rewind.Initial) {
			if err != nil {
				t.Error(err)
				return
			}
			followed[spot{r.HLC, r.Partition, r.Offset}]++
			if n++; n == total.Load() {
				return
			}
		}
	})
	writing.Wait()
	total.Store(committed.Load() + 1)
	appendSome(t, pool, 1000, 1) // nobody has seen all before the total was known
	reading.Wait()

	log := wholeLog(t, pool)
	if int64(len(log)) != total.Load() {
		t.Errorf("%d records in the log, %d committed", len(log), total.Load())
	}
	for how, seen := range map[string]map[spot]int{"polled": polled, "followed": followed} {
		if len(seen) != len(log) {
			t.Errorf("%s: %d records of %d", how, len(seen), len(log))
		}
		for _, s := range log {
			if seen[s] != 1 {
				t.Errorf("%s: record %v was seen %d times", how, s, seen[s])
			}
		}
	}
}
