package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// workerTimeout is how long ago the last heartbeat of a worker may be that counts as alive.
const workerTimeout = 30 * time.Second

type statusCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type status struct {
	Perspectives []perspectiveStatus `json:"perspectives"`
	Partitions   []partitionStatus   `json:"partitions"`
	Workers      []workerStatus      `json:"workers"`
	Consumers    []consumerStatus    `json:"consumers"`
	Rebuilds     []rebuildStatus     `json:"rebuilds"`
	OldestAppend *appendStatus       `json:"oldest_append"`
}

type perspectiveStatus struct {
	PerspectiveName string  `json:"perspective_name"`
	State           string  `json:"state"`
	Version         int     `json:"version"`
	GenerationID    int     `json:"generation_id"`
	LagRecords      int64   `json:"lag_records"`
	LagSeconds      float64 `json:"lag_seconds"`
	Flagged         int64   `json:"flagged"`
	Failed          int64   `json:"failed"`
	Parked          int64   `json:"parked"`
	CatchingUp      int64   `json:"catching_up"`
	InGo            bool    `json:"-"`
}

// A parked stream is a failed one that nobody tries again by itself.
const perspectiveStatusQuery = `
select
  p.perspective_name,
  case when g.state <> 'active' then g.state else p.state end as state,
  g.version,
  g.generation_id,
  lag.records as lag_records,
  lag.seconds as lag_seconds,
  owed.flagged,
  owed.failed,
  owed.parked,
  owed.catching_up,
  g.apply is null as in_go
from rewind.perspectives p
join rewind.perspective_generations g on g.perspective_name = p.perspective_name
cross join lateral (
  select
    coalesce(sum(h.head_offset - t.next_offset), 0)::bigint as records,
    coalesce(extract(epoch from rewind._now() - min(u.appended_at)), 0)::double precision as seconds
  from rewind.perspective_partitions t
  cross join lateral (
    select w.wal_offset + 1 as head_offset
    from rewind.wal w
    where w.tree_id = g.tree_id and w.wal_partition = t.wal_partition
    order by w.wal_offset desc
    limit 1
  ) h
  left join rewind.wal u on u.tree_id = g.tree_id and u.wal_partition = t.wal_partition and u.wal_offset = t.next_offset
  where t.generation_id = g.generation_id and t.next_offset < h.head_offset
) lag
cross join lateral (
  select
    count(*) filter (where c.status & 32 <> 0) as flagged,
    count(*) filter (where c.status & 4 <> 0) as failed,
    count(*) filter (where c.status & 4 <> 0 and c.retry_at is null) as parked,
    count(*) filter (where c.status & 8 <> 0) as catching_up
  from rewind.perspective_cursors c
  where c.generation_id = g.generation_id and c.status & 44 <> 0
) owed
order by p.perspective_name, g.generation_id`

type partitionStatus struct {
	TreeName     string  `json:"tree_name"`
	WalPartition int     `json:"wal_partition"`
	Generation   int     `json:"generation"`
	FloorOffset  int64   `json:"floor_offset"`
	NextOffset   int64   `json:"next_offset"`
	LastHLC      *string `json:"last_hlc"`
}

const partitionStatusQuery = `
select tree_name, wal_partition, generation, floor_offset, next_offset, last_hlc::text
from rewind.partitions
order by tree_name, wal_partition`

type workerStatus struct {
	WorkerID      string          `json:"worker_id"`
	StartedAt     time.Time       `json:"started_at"`
	HeartbeatAt   time.Time       `json:"heartbeat_at"`
	Version       string          `json:"version"`
	GoPerspective json.RawMessage `json:"go_perspectives"`
	Alive         bool            `json:"-"`
}

const workerStatusQuery = `
select worker_id, started_at at time zone 'UTC', heartbeat_at at time zone 'UTC', version, go_perspectives,
  heartbeat_at > rewind._now() - $1::interval
from rewind.workers
order by started_at, worker_id`

type appendStatus struct {
	PID        int32   `json:"pid"`
	AgeSeconds float64 `json:"age_seconds"`
}

// The lock that an append holds until its transaction ends is advisory, of a class of its own for each tree.
const oldestAppendQuery = `
select a.pid, extract(epoch from clock_timestamp() - a.xact_start)::double precision
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
join rewind.trees t on l.classid::bigint = 1381433344 + t.tree_id
where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database())
  and a.xact_start is not null
order by a.xact_start
limit 1`

func readStatus(ctx context.Context, db querier) (s status, err error) {
	if s.Perspectives, err = queryRows[perspectiveStatus](ctx, db, perspectiveStatusQuery); err != nil {
		return s, err
	}
	if s.Partitions, err = queryRows[partitionStatus](ctx, db, partitionStatusQuery); err != nil {
		return s, err
	}
	if s.Workers, err = queryRows[workerStatus](ctx, db, workerStatusQuery, workerTimeout); err != nil {
		return s, err
	}
	appends, err := queryRows[appendStatus](ctx, db, oldestAppendQuery)
	if len(appends) > 0 {
		s.OldestAppend = &appends[0]
	}
	if err != nil {
		return s, err
	}
	if s.Consumers, err = queryRows[consumerStatus](ctx, db, consumerStatusQuery); err != nil {
		return s, err
	}
	s.Rebuilds, err = queryRows[rebuildStatus](ctx, db, rebuildStatusQuery)
	return s, err
}

// querier is a pool, connection or transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// queryRows returns rows as structs, by position; an empty list is not nil, so that it is a list in JSON.
func queryRows[T any](ctx context.Context, db querier, query string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T{}, rows, pgx.RowToStructByPos[T])
}

// liveWorkers counts the workers that are alive, and, by name, those that fold a perspective in Go.
func (s status) liveWorkers() (all int, inGo map[string]int) {
	inGo = map[string]int{}
	for _, w := range s.Workers {
		if !w.Alive {
			continue
		}
		all++
		var known map[string]json.RawMessage
		if json.Unmarshal(w.GoPerspective, &known) != nil {
			continue
		}
		for name := range known {
			inGo[name]++
		}
	}
	return all, inGo
}

// unknown are the perspectives in Go that no live worker knows.
func (s status) unknown() (names []string) {
	_, inGo := s.liveWorkers()
	for _, p := range s.Perspectives {
		if p.InGo && p.State != "paused" && inGo[p.PerspectiveName] == 0 {
			names = append(names, p.PerspectiveName)
		}
	}
	return slices.Compact(names)
}

func (c *statusCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := readStatus(ctx, pool)
	if err != nil {
		return err
	}
	for _, name := range s.unknown() {
		g.note("perspective %q is folded in Go, and no live worker knows it", name)
	}
	if c.JSON {
		return g.printJSON(s)
	}
	return c.print(g, s)
}

func (c *statusCmd) print(g *globals, s status) error {
	if len(s.Perspectives) == 0 {
		fmt.Fprintln(g.stdout, "no perspectives")
	} else {
		t := newTable(g.stdout, "perspective", "state", "generation", "version", "lag", "oldest unread", "rewind required", "failed", "parked", "catching up")
		for _, p := range s.Perspectives {
			t.AppendRow([]any{p.PerspectiveName, p.State, p.GenerationID, p.Version, p.LagRecords, seconds(p.LagSeconds), p.Flagged, p.Failed, p.Parked, p.CatchingUp})
		}
		t.Render()
	}
	printRebuilds(g, s.Rebuilds)

	fmt.Fprintln(g.stdout)
	t := newTable(g.stdout, "tree", "partitions", "records")
	for i := 0; i < len(s.Partitions); {
		tree, generation, partitions, records := s.Partitions[i].TreeName, 0, 0, int64(0)
		for ; i < len(s.Partitions) && s.Partitions[i].TreeName == tree; i++ {
			p := s.Partitions[i]
			records += p.NextOffset - p.FloorOffset
			if p.Generation > generation { // the last one is appended to
				generation, partitions = p.Generation, 0
			}
			partitions++
		}
		t.AppendRow([]any{tree, partitions, records})
	}
	t.Render()

	fmt.Fprintln(g.stdout)
	if len(s.Workers) == 0 {
		fmt.Fprintln(g.stdout, "no workers")
	} else {
		t := newTable(g.stdout, "worker", "version", "started", "last heartbeat", "state")
		for _, w := range s.Workers {
			state := "alive"
			if !w.Alive {
				state = "silent"
			}
			t.AppendRow([]any{w.WorkerID, w.Version, timeText(w.StartedAt), timeText(w.HeartbeatAt), state})
		}
		t.Render()
	}

	fmt.Fprintln(g.stdout)
	if err := printConsumers(g, s.Consumers); err != nil {
		return err
	}

	fmt.Fprintln(g.stdout)
	if s.OldestAppend == nil {
		_, err := fmt.Fprintln(g.stdout, "no append under way")
		return err
	}
	_, err := fmt.Fprintf(g.stdout, "oldest append under way: pid %d, its transaction began %s ago\n",
		s.OldestAppend.PID, seconds(s.OldestAppend.AgeSeconds))
	return err
}
