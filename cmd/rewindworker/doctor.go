package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/migrate"
)

// longAppend is how old an append's transaction may be before a person should look at it.
const longAppend = time.Minute

type doctorCmd struct {
	JSON bool `name:"json" help:"Print JSON, one object per finding."`
}

func (c *doctorCmd) Help() string {
	return `Exits with 1 if something needs a person.`
}

// finding is something that was looked at.
type finding struct {
	Check   string `json:"check"`
	Problem bool   `json:"problem"`
	Text    string `json:"text"`
}

func (c *doctorCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	findings, err := examine(ctx, pool)
	if err != nil {
		return err
	}
	problems := 0
	for _, f := range findings {
		if f.Problem {
			problems++
		}
		if c.JSON {
			err = g.printJSON(f)
		} else {
			mark := "ok  "
			if f.Problem {
				mark = "LOOK"
			}
			_, err = fmt.Fprintf(g.stdout, "%s  %s\n", mark, f.Text)
		}
		if err != nil {
			return err
		}
	}
	if problems > 0 {
		return errors.New("something needs a person")
	}
	return nil
}

func examine(ctx context.Context, pool *pgxpool.Pool) (findings []finding, err error) {
	add := func(check string, problem bool, format string, args ...any) {
		findings = append(findings, finding{check, problem, fmt.Sprintf(format, args...)})
	}
	add("schema", false, "the schema is at version %d, as needed", migrate.SchemaVersion) // connecting has checked it

	s, err := readStatus(ctx, pool)
	if err != nil {
		return nil, err
	}
	if a := s.OldestAppend; a == nil {
		add("oldest_append", false, "no append is under way")
	} else {
		add("oldest_append", a.AgeSeconds > longAppend.Seconds(),
			"the oldest append under way is in a transaction that began %s ago (pid %d); other appends to its partitions wait for it",
			seconds(a.AgeSeconds), a.PID)
	}

	workers, inGo := s.liveWorkers()
	add("workers", false, "%s", count(int64(workers), "live worker"))
	for _, p := range s.Perspectives {
		todo := p.LagRecords > 0 || p.Flagged+p.Failed-p.Parked+p.CatchingUp > 0
		known := workers
		if p.InGo {
			known = inGo[p.PerspectiveName]
		}
		name := "perspective " + p.PerspectiveName
		if p.State == "building" || p.State == "retired" {
			name += fmt.Sprintf(", generation %d, which is not shown", p.GenerationID)
		}
		text := fmt.Sprintf("%s: %s unread, %s with a repair to come, %d failed",
			name, count(p.LagRecords, "record"), count(p.Flagged+p.CatchingUp, "stream"), p.Failed)
		switch {
		case p.State == "paused":
			add("perspective", false, "%s; it is paused", text)
		case known == 0 && todo:
			add("perspective", true, "%s; no live worker folds it", text)
		default:
			add("perspective", false, "%s", text)
		}
	}

	lost, err := queryRows[lostPositions](ctx, pool, lostPositionsQuery)
	if err != nil {
		return nil, err
	}
	for _, l := range lost {
		add("positions", true, "perspective %s does not read %s, its positions there are missing or beyond the log's end; to set them right: "+
			"rewindworker verify %s --repair", l.PerspectiveName, count(l.Partitions, "partition"), shellWords(l.PerspectiveName))
	}

	failed, err := queryRows[failedStream](ctx, pool, failedStreamsQuery, maxShownErrors+1)
	if err != nil {
		return nil, err
	}
	for i, f := range failed {
		if i == maxShownErrors {
			add("failed_stream", true, "and more failed streams")
			break
		}
		when := "parked: it is not tried again by itself"
		if f.RetryAt != nil {
			when = "tried again at " + timeText(*f.RetryAt)
		}
		stream := shellWords(f.PerspectiveName, f.StreamKey)
		tenant := ""
		if f.TenantID != "" {
			tenant = " " + shellWords("--tenant="+f.TenantID)
		}
		if f.IsBuilt {
			add("failed_stream", true, "stream %s of version %d of perspective %s, which is not shown yet, failed: %s",
				f.StreamKey, f.Version, f.PerspectiveName, f.Error)
			continue
		}
		event, skip := "an unknown event", ""
		if f.ErrorEventID != nil {
			event = "event " + *f.ErrorEventID
			skip = fmt.Sprintf("; to leave the event out: rewindworker perspective skip %s %s --reason TEXT%s", stream, *f.ErrorEventID, tenant)
		}
		add("failed_stream", true, "stream %s of perspective %s failed (%s) at %s, %s: %s; to try it now: rewindworker perspective retry %s%s%s",
			f.StreamKey, f.PerspectiveName, count(int64(f.Attempts), "attempt"), event, when, f.Error, stream, tenant, skip)
	}

	rebuilds, err := queryRows[unfinishedRebuild](ctx, pool, unfinishedRebuildsQuery)
	if err != nil {
		return nil, err
	}
	for _, r := range rebuilds {
		name := shellWords(r.PerspectiveName)
		if r.Failed {
			add("rebuild", true, "the %s rebuild of perspective %s, of version %d, failed: %s; to try again: rewindworker perspective rebuild %s; "+
				"to give it up: rewindworker perspective abort %s", r.Mode, r.PerspectiveName, r.Version, r.Error, name, name)
		} else {
			add("rebuild", true, "the %s rebuild of perspective %s is done and not verified; to verify and show it: "+
				"rewindworker perspective rebuild %s --verify", r.Mode, r.PerspectiveName, name)
		}
	}

	held, err := queryRows[struct{ Count int64 }](ctx, pool, `select count(*) from rewind.quarantined_events where state = 'held'`)
	if err != nil {
		return nil, err
	}
	text := count(held[0].Count, "event") + " in quarantine"
	if held[0].Count > 0 {
		text += ": rewindworker quarantine list"
	}
	add("quarantine", held[0].Count > 0, "%s", text)

	expired, err := queryRows[struct{ Count int64 }](ctx, pool,
		`select count(*) from rewind.perspective_stream_locks where expires_at <= rewind._now()`)
	if err != nil {
		return nil, err
	}
	add("expired_locks", expired[0].Count > 0 && workers == 0, "%s expired", count(expired[0].Count, "stream lock"))
	return findings, nil
}

type failedStream struct {
	PerspectiveName string
	StreamKey       string
	TenantID        string
	Attempts        int
	ErrorEventID    *string
	RetryAt         *time.Time
	Error           string
	Version         int
	IsBuilt         bool // part of a generation that is being built
}

type lostPositions struct {
	PerspectiveName string
	Partitions      int64
}

const lostPositionsQuery = `
select p.perspective_name, count(*)
from rewind.perspectives p
join rewind.perspective_generations g on g.generation_id = p.active_generation
cross join lateral rewind._verify_positions(g) v
group by p.perspective_name
order by p.perspective_name`

type unfinishedRebuild struct {
	PerspectiveName string
	Mode            string
	Version         int
	Failed          bool
	Error           string
}

// shellWords are words as a shell takes them.
func shellWords(words ...string) string {
	for i, word := range words {
		if strings.ContainsFunc(word, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-=./:@", r)
		}) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Parked ones first: they are what a person has to see.
const failedStreamsQuery = `
select g.perspective_name, s.stream_key, s.tenant_id, c.attempts, c.error_event_id::text, c.retry_at, coalesce(c.error, ''), g.version,
  g.state = 'building'
from rewind.perspectives p
join rewind.perspective_generations g on g.perspective_name = p.perspective_name and g.state in ('active', 'building')
join rewind.perspective_cursors c on c.generation_id = g.generation_id
join rewind.streams s on s.stream_id = c.stream_id
where c.status & 44 <> 0 and c.status & 4 <> 0
order by c.retry_at is not null, g.perspective_name, s.stream_key
limit $1`

// Rebuilds whose generations are neither shown nor worked on: failed ones, and those that wait for whoever verifies them, who is gone.
const unfinishedRebuildsQuery = `
select r.perspective_name, r.mode, g.version, r.state = 'failed', coalesce(r.error, '')
from (
  select distinct on (l.perspective_name) l.* from rewind.perspective_rebuilds l order by l.perspective_name, l.rebuild_id desc
) r
join rewind.perspective_generations g on g.generation_id = r.generation_id
where g.state = 'building' and (r.state = 'failed' or r.state = 'running' and r.held and r.waits_for = 'release' and not exists (
  select from pg_locks k
  where k.locktype = 'advisory' and k.classid = 1381433340 and k.objid = r.generation_id::oid
    and k.database = (select d.oid from pg_database d where d.datname = current_database())
))
order by r.perspective_name`
