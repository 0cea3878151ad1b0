package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/term"

	"github.com/rewindpg/rewind/examples"
	"github.com/rewindpg/rewind/worker"
)

const (
	// Up to so many events are told one by one. Of more, only the first late ones are, and the rest comes in so many chunks.
	demoEventsShown = 200
	demoLateShown   = 5
	demoChunks      = 40
)

type demoCmd struct {
	Once bool   `help:"End when the story is told; without it, on a terminal, events trickle in until you interrupt."`
	File string `placeholder:"FILE" help:"Tell this file, in the format of import, with the perspective of examples/commits."`
	JSON bool   `name:"json" help:"Print the outcome as JSON and nothing else."`
}

func (c *demoCmd) Help() string {
	return `Shows how late events are repaired, on a server of its own in the data directory, with a tree and a perspective of its own.`
}

type demoResult struct {
	Events         int64 `json:"events"`
	Streams        int64 `json:"streams"`
	LateEvents     int64 `json:"late_events"`
	NewEvents      int64 `json:"new_events"`
	Duplicates     int64 `json:"duplicates"`
	Rewinds        int64 `json:"rewinds"`
	EventsReplayed int64 `json:"events_replayed"`
	Verified       bool  `json:"verified"`
}

func (c *demoCmd) Run(ctx context.Context, g *globals) (err error) {
	if g.DatabaseURL != "" {
		return usageError{errors.New("the demo uses a server of its own: leave --database-url out")}
	}
	file, name, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	pool, err := g.connectEmbedded(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()

	d := &demo{pool: pool, name: name, file: file, out: g.stdout, color: isTerminal(g.stdout)}
	if c.JSON {
		d.out = io.Discard
	}
	create, function := c.apply()
	result, err := d.tell(ctx, create, function)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := g.printJSON(result); err != nil {
			return err
		}
	}
	if !result.Verified {
		return fmt.Errorf("models of perspective %q differ from the full replay; rewindworker verify shows them", name)
	}
	if c.Once || c.JSON || !isTerminal(g.stdout) {
		return nil
	}
	return d.trickle(ctx)
}

// open returns what is told, and the name of its tree and perspective, which it shares with no other file.
func (c *demoCmd) open() (*eventFile, string, error) {
	if c.File == "" {
		file, err := spool(strings.NewReader(examples.Orders))
		return file, "demo_orders", err
	}
	file, err := openEventFile(c.File)
	if err != nil {
		return nil, "", err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file.file); err != nil {
		return nil, "", errors.Join(err, file.close())
	}
	base := strings.ToValidUTF8(filepath.Base(file.name), "")
	return file, fmt.Sprintf("demo_%.40s_%s", strings.TrimSuffix(base, filepath.Ext(base)), hex.EncodeToString(hash.Sum(nil)[:4])), nil
}

// apply is the SQL that creates the apply function, and the function.
func (c *demoCmd) apply() (create, function string) {
	if c.File == "" {
		return examples.ApplyOrder, "examples.apply_order(jsonb, rewind.event)"
	}
	return examples.ApplyCommit, "examples.apply_commit(jsonb, rewind.event)"
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// demo tells a file to a tree and a perspective of the same name, a little at a time.
type demo struct {
	pool  *pgxpool.Pool
	name  string
	file  *eventFile
	out   io.Writer
	color bool

	worker  *worker.Worker
	rewinds int64 // greatest rewind_id seen
	repairs int64 // late events that were repaired in their batch
}

// demoWays are the ways of repairing late events, and the option that decides between them.
var demoWays = []struct {
	title        string
	inlineEvents json.RawMessage
}{
	{"inline_rewind_events is 0: every late event takes the rewind path", json.RawMessage("0")},
	{"inline_rewind_events is 256, the default: a late event near the end of its stream is repaired in the batch that reads it", json.RawMessage("null")},
}

// create makes tree, perspective and worker.
func (d *demo) create(ctx context.Context, create, function string) (err error) {
	for _, statement := range []string{
		create,
		fmt.Sprintf(`select rewind.create_tree(%s)`, quote(d.name)),
		fmt.Sprintf(`select rewind.create_perspective(%[1]s, %[1]s, %[2]s)`, quote(d.name), quote(function)),
	} {
		if _, err := d.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	d.worker, err = worker.New(d.pool, worker.Config{
		Perspectives: []string{d.name}, Logger: slog.New(slog.DiscardHandler), PollInterval: time.Millisecond,
	})
	return err
}

func (d *demo) tell(ctx context.Context, create, function string) (result demoResult, err error) {
	if err := d.file.check(ctx, d.pool, func(int64) {}); err != nil {
		return result, err
	}
	conn, err := d.pool.Acquire(ctx) // it has the temporary tables
	if err != nil {
		return result, err
	}
	defer conn.Release()
	staged, late, err := d.stage(ctx, conn)
	if err != nil {
		return result, err
	}
	if err := d.create(ctx, create, function); err != nil {
		return result, err
	}
	if _, err := d.rewindsSince(ctx); err != nil { // those of earlier runs
		return result, err
	}

	fmt.Fprintf(d.out, "%s in %s. A late event is one that happened before something that its stream already has.\n",
		count(staged.events, "event"), count(staged.streams, "stream"))
	for i, way := range demoWays {
		// Nobody shall have to wait: no debounce, and a stream may be rewound as often as it is late.
		err := setOptions(ctx, d.pool, map[string]json.RawMessage{
			"inline_rewind_events": way.inlineEvents, "debounce_window": json.RawMessage(`"0s"`), "rewind_share": json.RawMessage("1"),
		}, &d.name, nil)
		if err != nil {
			return result, err
		}
		fmt.Fprintf(d.out, "\n%s\n\n", d.paint(bold, way.title))
		part := &demoPart{demo: d, conn: conn, staged: staged, late: late, chunk: 1}
		if staged.events > demoEventsShown {
			part.chunk, part.shown = (staged.events+demoChunks-1)/demoChunks, demoLateShown
		}
		added, err := part.tell(ctx, staged.events*int64(i)/2+1, staged.events*int64(i+1)/2)
		if err != nil {
			return result, err
		}
		result.NewEvents += added
	}
	err = setOptions(ctx, d.pool, map[string]json.RawMessage{
		"debounce_window": json.RawMessage("null"), "rewind_share": json.RawMessage("null"),
	}, &d.name, nil)
	if err != nil {
		return result, err
	}
	result.Duplicates = staged.events - result.NewEvents
	if err := d.countEvents(ctx, &result); err != nil {
		return result, err
	}
	return result, d.conclude(ctx, &result)
}

// stage loads the file into a temporary table of a connection, and finds the places of the late events. A file that the log would
// refuse leaves nothing behind.
func (d *demo) stage(ctx context.Context, conn *pgxpool.Conn) (staged *stagedEvents, late []int64, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if staged, err = d.file.stage(ctx, tx, d.name); err != nil {
			return err
		}
		if staged.events == 0 {
			return fmt.Errorf("%s has no events", d.file.name)
		}
		return staged.try(ctx, tx)
	})
	if err != nil {
		return nil, nil, err
	}
	rows, err := conn.Query(ctx, `
		select place
		from (
		  select place, event_id::text collate "C" < max(event_id::text collate "C") over (
		    partition by tenant_id, stream_key order by place rows between unbounded preceding and 1 preceding) as late
		  from pg_temp.staged_events
		) e
		where late
		order by place`)
	if err != nil {
		return nil, nil, err
	}
	late, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return staged, late, err
}

type demoRewind struct {
	StreamID       string
	RewindID       int64
	ReplaySource   string
	EventsReplayed int64
}

// rewindsSince returns the newest rewind of each stream since the last call.
func (d *demo) rewindsSince(ctx context.Context) (map[string]demoRewind, error) {
	rows, err := queryRows[demoRewind](ctx, d.pool, `
		select stream_id::text, rewind_id, replay_source, events_replayed
		from rewind.perspective_rewinds where perspective_name = $1 and rewind_id > $2 order by rewind_id`, d.name, d.rewinds)
	if err != nil {
		return nil, err
	}
	byStream := map[string]demoRewind{}
	for _, r := range rows {
		byStream[r.StreamID] = r
		d.rewinds = r.RewindID
	}
	return byStream, nil
}

type demoModel struct {
	StreamID    string
	Model       map[string]json.RawMessage
	LastEventID string
}

func (d *demo) models(ctx context.Context, streamIDs []string) (map[string]demoModel, error) {
	rows, err := queryRows[demoModel](ctx, d.pool, `
		select stream_id::text, model, last_event_id::text
		from `+pgx.Identifier{"lens", d.name}.Sanitize()+` where stream_id = any ($1::text[]::uuid[])`, streamIDs)
	if err != nil {
		return nil, err
	}
	models := map[string]demoModel{}
	for _, m := range rows {
		models[m.StreamID] = m
	}
	return models, nil
}

// demoPart is what is told under one way of repairing.
type demoPart struct {
	*demo
	conn   *pgxpool.Conn
	staged *stagedEvents
	late   []int64 // places of late events, ascending
	chunk  int64   // events that come at once; 1: every event is shown
	shown  int     // late events that come alone and are shown

	chunked, rewound, inBatch int64 // late events that came in chunks; repairs of their streams
}

// tell appends the events of a range of places.
func (p *demoPart) tell(ctx context.Context, from, to int64) (added int64, err error) {
	for from <= to {
		end := min(from+p.chunk-1, to)
		i, isLate := slices.BinarySearch(p.late, from)
		alone := p.chunk == 1
		if p.shown > 0 && i < len(p.late) {
			if isLate {
				p.shown--
				alone, end = true, from
			} else {
				end = min(end, p.late[i]-1)
			}
		}
		n, err := p.step(ctx, from, end, alone)
		if err != nil {
			return added, err
		}
		added += n
		if next, _ := slices.BinarySearch(p.late, end+1); !alone {
			p.chunked += int64(next - i)
		}
		from = end + 1
	}
	switch {
	case added == 0:
		fmt.Fprintln(p.out, "nothing new: the log has these events already")
	case p.chunked > 0:
		fmt.Fprintf(p.out, "… and %s in chunks of %d: %s, %s in a batch; what was late in its own chunk only was sorted there\n",
			count(p.chunked, "late event"), p.chunk, count(p.rewound, "rewind"), count(p.inBatch, "repair"))
	}
	return added, nil
}

// demoStream is what a step brings to one stream.
type demoStream struct {
	StreamID  string
	StreamKey string
	TenantID  string
	EventType string // of the first event
	EventID   string // the least one
	Time      time.Time
}

// step appends the events of a range of places and runs dry. An event that comes alone is shown.
func (p *demoPart) step(ctx context.Context, from, to int64, alone bool) (added int64, err error) {
	streams, err := queryRows[demoStream](ctx, p.conn, `
		select stream_id::text, stream_key, tenant_id, event_type, event_id, rewind.event_time(event_id::uuid) at time zone 'UTC'
		from (
		  select rewind.stream_id($3, stream_key, jsonb_build_object('tenant_id', tenant_id)) as stream_id, stream_key, tenant_id,
		    min(event_type) as event_type, min(coalesce(event_id, rewind.uuidv7())::text collate "C") as event_id
		  from pg_temp.staged_events
		  where place between $1 and $2
		  group by stream_key, tenant_id
		) s`, from, to, p.name)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, s := range streams {
		ids = append(ids, s.StreamID)
	}
	before, err := p.models(ctx, ids)
	if err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		added, _, err = p.staged.append(ctx, tx, from, to, func(int64) {})
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := p.worker.RunUntilIdle(ctx); err != nil {
		return added, err
	}
	rewinds, err := p.rewindsSince(ctx)
	if err != nil || added == 0 {
		return added, err
	}
	after, err := p.models(ctx, ids)
	if err != nil {
		return added, err
	}
	for _, s := range streams {
		rewind, rewound := rewinds[s.StreamID]
		late := s.EventID < before[s.StreamID].LastEventID
		if late && !rewound {
			p.repairs++
		}
		switch {
		case alone:
			err = p.show(ctx, s, late, before[s.StreamID].Model, after[s.StreamID].Model, rewind)
		case rewound:
			p.rewound++
		case late:
			p.inBatch++
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

func (d *demo) show(ctx context.Context, s demoStream, late bool, before, after map[string]json.RawMessage, rewind demoRewind) error {
	key := s.StreamKey
	if s.TenantID != "" {
		key = s.TenantID + "/" + key
	}
	fmt.Fprintf(d.out, "%s  %-12s %-12s ", s.Time.Format("2006-01-02 15:04"), key, s.EventType)
	if !late {
		_, err := fmt.Fprintln(d.out, d.changes(before, after))
		return err
	}
	how := "repaired in its batch"
	if rewind.RewindID != 0 {
		source := map[string]string{"full": "the beginning", "snapshot": "a snapshot"}[rewind.ReplaySource]
		how = fmt.Sprintf("repaired by a rewind: %s replayed from %s", count(rewind.EventsReplayed, "event"), source)
	}
	problems, err := verify(ctx, d.pool, d.name, s.StreamKey, s.TenantID)
	if err != nil {
		return err
	}
	verdict := d.paint(green, "equals the full replay")
	if len(problems) > 0 {
		verdict = d.paint(red, "DIFFERS from the full replay")
	}
	_, err = fmt.Fprintf(d.out, "%s  %s\n%18s%s; %s\n", d.paint(yellow, "LATE"), d.changes(before, after), "", how, verdict)
	return err
}

// changes is the difference between two models, key by key.
func (d *demo) changes(before, after map[string]json.RawMessage) string {
	keys := map[string]bool{}
	for _, model := range []map[string]json.RawMessage{before, after} {
		for key := range model {
			keys[key] = true
		}
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := plain(before[key]), plain(after[key])
		switch {
		case was == is:
		case before == nil:
			changes = append(changes, fmt.Sprintf("%s %s", key, d.paint(green, is)))
		default:
			changes = append(changes, fmt.Sprintf("%s %s → %s", key, d.paint(red, was), d.paint(green, is)))
		}
	}
	if len(changes) == 0 {
		return "no change"
	}
	return strings.Join(changes, ", ")
}

// plain is a value of a model as people read it.
func plain(value json.RawMessage) string {
	var text string
	switch {
	case value == nil:
		return "none"
	case json.Unmarshal(value, &text) == nil:
		return text
	default:
		return string(value)
	}
}

// Colors of a terminal.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (d *demo) paint(color, text string) string {
	if !d.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// countEvents counts over the log.
func (d *demo) countEvents(ctx context.Context, result *demoResult) error {
	return d.pool.QueryRow(ctx, `
		select count(*), count(distinct stream_id), count(*) filter (where late)
		from (
		  select w.stream_id, w.event_id::text collate "C" < max(w.event_id::text collate "C") over (
		    partition by w.stream_id order by w.stream_version rows between unbounded preceding and 1 preceding) as late
		  from rewind.wal w
		  join rewind.trees t on t.tree_id = w.tree_id
		  where t.tree_name = $1 and w.kind = 6
		) e`, d.name).Scan(&result.Events, &result.Streams, &result.LateEvents)
}

// conclude counts over the history, verifies, and says what came out.
func (d *demo) conclude(ctx context.Context, result *demoResult) error {
	err := d.pool.QueryRow(ctx, `
		select count(*), coalesce(sum(events_replayed), 0)::bigint from rewind.perspective_rewinds where perspective_name = $1`,
		d.name).Scan(&result.Rewinds, &result.EventsReplayed)
	if err != nil {
		return err
	}
	problems, err := verify(ctx, d.pool, d.name, "", "")
	if err != nil {
		return err
	}
	result.Verified = len(problems) == 0
	verdict := d.paint(green, "every model equals the full replay of its stream")
	if !result.Verified {
		verdict = d.paint(red, count(int64(len(problems)), "problem"))
	}
	fmt.Fprintf(d.out, "\nThe log has %s in %s, %d of them late; %d new in this run, %d there already.\n",
		count(result.Events, "event"), count(result.Streams, "stream"), result.LateEvents, result.NewEvents, result.Duplicates)
	repairs := ""
	if d.repairs > 0 {
		repairs = fmt.Sprintf(", and this run made %s in a batch", count(d.repairs, "repair"))
	}
	fmt.Fprintf(d.out, "%s replayed %s%s. Verified: %s.\n",
		count(result.Rewinds, "rewind"), count(result.EventsReplayed, "event"), repairs, verdict)
	_, err = fmt.Fprintf(d.out, "Tree and perspective are %s: select * from lens.%s\n", d.name, pgx.Identifier{d.name}.Sanitize())
	return err
}

// quote makes a literal for statements that take no parameters. Standard-conforming strings are the default since PostgreSQL 9.1.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
