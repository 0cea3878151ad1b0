package rewind

import (
	"container/heap"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/db"
)

const (
	firstRecords = 1       // of the first read, beside a margin for each partition: the first record comes soon
	maxRecords   = 1 << 14 // of a later one
	maxInline    = 2 << 10 // bytes, as stored, of a record that comes with others; what is larger is kept out of the table's rows anyway
	maxBytes     = 4 << 20 // of a later read, about; of larger records that are loaded at once, but for one that is larger itself
	maxNames     = 1 << 14 // of streams that are kept in mind
	maxStandby   = 200 * time.Millisecond
)

// Subscribe yields the records of a tree's feed from a cursor up to the log's end as it is at the call, ordered by clock and partition, and
// then ends. Each record knows its place and, with [Record.Cursor], the cursor that resumes right after it. A slow reader costs nothing but
// its own time: about 16,384 records or 8 MB are read ahead, and nothing is held in the database between two reads.
//
// Only what was authored here is yielded, unless an option says otherwise, and never clean-up records. A cursor that can't be gone on from is
// an error that matches [ErrCursorTrimmed], [ErrCursorAhead], [ErrCursorOfOtherHistory] or [ErrUnknownGeneration]; on a standby that has not
// yet got to where the cursor is, Subscribe waits for it. After an error there is nothing more.
// Options: [EventTypes], [Kinds], [KeyPrefix], [FromOrigin], [ExcludeLocalOrigin].
func Subscribe(ctx context.Context, tx DBTX, tree string, from Cursor, opts ...Option) iter.Seq2[Record, error] {
	o, err := collect(opts, filterOptions...)
	if err != nil {
		return failed(err)
	}
	f, err := capture(ctx, tx, tree, from, o.filter)
	if err != nil {
		return failed(err)
	}
	return func(yield func(Record, error) bool) {
		again := *f
		again.lanes = slices.Clone(f.lanes)
		again.names = map[uuid.UUID]streamName{}
		again.read(ctx, tx, yield)
	}
}

func failed(err error) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { yield(Record{}, err) }
}

// Cursor returns the cursor that resumes right after a record of the feed. Records that were read otherwise have none: it is the beginning.
// With a filter, what it passed over lies at or after the cursor of the record before it, so the same filter goes on as if never stopped.
func (r Record) Cursor() Cursor {
	if r.page == nil {
		return Initial
	}
	return r.page.cursor(r.nth)
}

// feed is a part of a tree's feed: from a cursor to the log's end as it was at some moment.
type feed struct {
	tree   string
	treeID int32
	epoch  uuid.UUID
	filter feedFilter
	lanes  []lane
	names  map[uuid.UUID]streamName
}

// streamName is what people call a stream.
type streamName struct{ tenant, key string }

// entry is a record on its way into the merge. One that does not match the filter only says how far its partition was read. Of one with
// deferred bytes, what it carries is loaded when its turn comes.
type entry struct {
	Record
	matches  bool
	deferred int32
}

// lane is the part of a feed in one partition, and what was read of it ahead of the merge.
type lane struct {
	generation int
	partition  int
	place
	until    int64
	read     int64 // offset after what was read
	refilled int64 // offset at the last refill
	ahead    []entry
	buffer   []entry // where ahead lies; what it took is read over
}

// place is where a reader stands in a partition: the next offset, and the clock of the record before it, if there is one.
type place struct {
	offset   int64
	after    int64
	hasAfter bool
}

func (l *lane) unread() bool { return l.read < l.until }

// capture checks a cursor, and takes down what is before it now.
func capture(ctx context.Context, tx DBTX, tree string, from Cursor, filter feedFilter) (*feed, error) {
	doing := fmt.Sprintf("subscribe to tree %q", tree)
	text, err := json.Marshal(from)
	if err != nil {
		return nil, wrap(err, doing)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, maxStandby) {
		rows, err := queries.FeedRanges(ctx, tx, db.FeedRangesParams{Tree: tree, FeedCursor: text})
		if err != nil {
			return nil, wrap(err, doing)
		}
		f := &feed{tree: tree, filter: filter, names: map[uuid.UUID]streamName{}}
		lags := len(rows) == 0 // it does not yet know the cursor's generation
		for _, r := range rows {
			l := lane{
				generation: int(r.Generation), partition: int(r.WalPartition),
				place: place{offset: r.FromOffset}, until: r.UntilOffset, read: r.FromOffset, refilled: r.FromOffset,
			}
			if r.FromHlc != nil {
				l.after, l.hasAfter = *r.FromHlc, true
			}
			f.treeID, f.epoch = r.TreeID, r.StoreEpoch
			f.lanes = append(f.lanes, l)
			lags = lags || r.HeadOffset < r.FromOffset
		}
		if !lags {
			return f, nil
		}
		if err := pause(ctx, wait, nil); err != nil {
			return nil, wrap(err, doing)
		}
	}
}

// read merges what is before the feed, page by page, and reports whether the reader wants to go on.
func (f *feed) read(ctx context.Context, tx DBTX, yield func(Record, error) bool) bool {
	for wanted := firstRecords; f.unfinished(); {
		next, err := f.refill(ctx, tx, wanted)
		if err != nil {
			yield(Record{}, wrap(err, fmt.Sprintf("read the feed of tree %q", f.tree)))
			return false
		}
		records := f.merge()
		for i, e := range records {
			err := ctx.Err()
			if err == nil && e.deferred > 0 {
				err = f.load(ctx, tx, records[i:])
			}
			if err != nil {
				yield(Record{}, wrap(err, fmt.Sprintf("read the feed of tree %q", f.tree)))
				return false
			}
			if !yield(e.Record, nil) {
				return false
			}
			*e = entry{} // may be large, and the page is still held
		}
		wanted = next
	}
	return true
}

func (f *feed) unfinished() bool {
	return slices.ContainsFunc(f.lanes, func(l lane) bool { return l.offset < l.until })
}

// load brings what deferred records carry, of as many of them as may be loaded at once.
func (f *feed) load(ctx context.Context, tx DBTX, records []*entry) error {
	params := db.LoadFeedRecordsParams{TreeID: f.treeID}
	var loading []*entry
	size := 0
	for _, e := range records {
		if e.deferred == 0 {
			continue
		}
		if size += int(e.deferred); size > maxBytes && loading != nil {
			break
		}
		loading = append(loading, e)
		params.Partitions = append(params.Partitions, int32(e.Partition))
		params.Offsets = append(params.Offsets, e.Offset)
	}
	contents, err := queries.LoadFeedRecords(ctx, tx, params)
	if err != nil {
		return err
	}
	for i, e := range loading {
		e.Payload, e.Metadata, e.Delta, e.deferred = contents[i].Payload, contents[i].Metadata, contents[i].Delta, 0
	}
	return nil
}

// refill reads on in the lanes that have run empty or soon will, altogether about as many records as wanted: half of them evenly, half in
// proportion to what the merge took of each lane since the last time, since a lane that was quiet may be the next to be busy. It returns
// how many records to want next: more, as far as maxBytes suffice if they are of the size that these are.
func (f *feed) refill(ctx context.Context, tx DBTX, wanted int) (next int, err error) {
	var taken, unread int64
	for i := range f.lanes {
		if l := &f.lanes[i]; l.unread() {
			taken += l.offset - l.refilled
			unread++
		}
	}
	var partitions []int32
	var from, to []int64
	var most int64
	laneOf := map[int]*lane{}
	for i := range f.lanes {
		l := &f.lanes[i]
		if !l.unread() {
			continue
		}
		share := float64(wanted) / float64(unread)
		if taken > 0 {
			share = share/2 + float64(wanted)/2*float64(l.offset-l.refilled)/float64(taken)
		}
		size := int64(math.Ceil(share + 2*math.Sqrt(share) + 1))
		l.refilled = l.offset
		if ahead := l.read - l.offset; ahead == 0 || ahead < size/2 {
			partitions = append(partitions, int32(l.partition))
			from = append(from, l.read)
			to = append(to, min(l.until, l.offset+size))
			most += min(l.until, l.offset+size) - l.read
			laneOf[l.partition] = l
			l.buffer = slices.Grow(append(l.buffer[:0], l.ahead...), int(l.offset+size-l.read))
			l.ahead = l.buffer
		}
	}
	if len(partitions) == 0 {
		return wanted, nil
	}
	rows, err := tx.Query(ctx, readFeedParts, describing(tx), pgx.QueryResultFormats{pgx.BinaryFormatCode},
		f.treeID, partitions, from, to, maxInline, f.filter.inSQL(), !f.filter.withoutLocal, most)
	if err != nil {
		return 0, err
	}
	var d decoder
	size, read := 0, 0
	for rows.Next() {
		e := d.entry(rows.RawValues())
		l := laneOf[e.Partition]
		l.ahead = append(l.ahead, e)
		l.read = e.Offset + 1
		size += min(int(e.deferred), maxInline)
		read++
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	mean := 1 + (size+d.kept)/max(read, 1)
	return min(16*wanted, maxRecords, maxBytes/mean), f.name(ctx, tx, laneOf)
}

// readFeedParts is planned for every page, since it must not keep a plan from when the log was small, and decoded by decoder. The limit is
// never reached; it tells the planner how few rows these are, which would else compile the query when the log is long.
const readFeedParts = `
select e.wal_partition, e.wal_offset, e.hlc, e.stream_id, e.stream_version, e.event_id, e.kind, e.mode, e.event_type, e.payload, e.metadata,
  e.delta, e.end_key, e.origin_cluster, e.origin_hlc, e.appended_at, e.matches, e.deferred_bytes
from (select rewind._feed_filter(p_filter => $6::jsonb, p_include_local_origin => $7::boolean) as filter offset 0) f
cross join lateral rewind._read_feed_parts(p_tree_id => $1::int, p_partitions => $2::int[], p_from => $3::bigint[], p_to => $4::bigint[],
  p_max_bytes => $5::int, p_filter => f.filter) e
limit $8`

// describing is a mode in which results come in binary: with one round trip, unless the connection keeps no descriptions.
func describing(tx DBTX) pgx.QueryExecMode {
	var config *pgx.ConnConfig
	switch tx := tx.(type) {
	case interface{ Config() *pgxpool.Config }:
		config = tx.Config().ConnConfig
	case interface{ Config() *pgx.ConnConfig }:
		config = tx.Config()
	case interface{ Conn() *pgx.Conn }:
		config = tx.Conn().Config()
	}
	if config != nil && config.DescriptionCacheCapacity == 0 {
		return pgx.QueryExecModeDescribeExec
	}
	return pgx.QueryExecModeCacheDescribe
}

// decoder makes entries of the rows of readFeedParts, which come in binary. Scanning into them by their types took half of a reader's time:
// so numbers are read off where they lie, what is long goes into blocks that records share, and names of types are made once.
type decoder struct {
	block []byte
	kept  int // bytes in blocks; beyond twice maxBytes all is deferred: records have grown, or were stored compressed
	types map[string]string
}

func (d *decoder) entry(v [][]byte) entry {
	e := entry{
		Record: Record{
			Partition:     int(int32(binary.BigEndian.Uint32(v[0]))),
			Offset:        bigint(v[1]),
			HLC:           bigint(v[2]),
			StreamID:      uuid.UUID(v[3]),
			StreamVersion: bigint(v[4]),
			EventID:       uuid.UUID(v[5]),
			Kind:          Kind(smallint(v[6])),
			Type:          d.name(v[8]),
			OriginCluster: uuid.UUID(v[13]),
			AppendedAt:    time.UnixMicro(bigint(v[15]) + unixMicroOf2000),
		},
		matches:  v[16][0] == 1,
		deferred: int32(binary.BigEndian.Uint32(v[17])),
	}
	if d.kept < 2*maxBytes {
		e.Payload, e.Metadata, e.Delta = d.json(v[9]), d.json(v[10]), d.keep(v[11])
	} else if e.deferred == 0 {
		e.deferred = int32(len(v[9]) + len(v[10]) + len(v[11]))
	}
	if v[7] != nil {
		mode := smallint(v[7])
		e.Mode = &mode
	}
	if v[12] != nil {
		key := string(v[12])
		e.EndKey = &key
	}
	if v[14] != nil {
		hlc := bigint(v[14])
		e.OriginHLC = &hlc
	}
	return e
}

const unixMicroOf2000 = 946_684_800_000_000 // where timestamps of PostgreSQL count from

func bigint(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func smallint(b []byte) int { return int(int16(binary.BigEndian.Uint16(b))) }

// json keeps a jsonb value, which comes after a byte with the format's version.
func (d *decoder) json(b []byte) []byte {
	if b == nil {
		return nil
	}
	return d.keep(b[1:])
}

// keep copies what lies in the connection's buffer.
func (d *decoder) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > cap(d.block)-len(d.block) {
		d.block = make([]byte, 0, max(len(b), 64<<10))
	}
	start := len(d.block)
	d.block = append(d.block, b...)
	d.kept += len(b)
	return d.block[start:len(d.block):len(d.block)]
}

func (d *decoder) name(b []byte) string {
	if name, known := d.types[string(b)]; known {
		return name
	}
	if d.types == nil {
		d.types = map[string]string{}
	}
	name := string(b)
	d.types[name] = name
	return name
}

// name looks up the tenants and keys of what was read, those that aren't known from before.
func (f *feed) name(ctx context.Context, tx DBTX, read map[int]*lane) error {
	if len(f.names) > maxNames {
		clear(f.names)
	}
	var unknown []string
	each := func(do func(e *entry)) {
		for _, l := range read {
			for i := range l.ahead {
				if e := &l.ahead[i]; e.matches && e.Tree == "" {
					do(e)
				}
			}
		}
	}
	each(func(e *entry) {
		if _, known := f.names[e.StreamID]; !known {
			f.names[e.StreamID] = streamName{}
			unknown = append(unknown, e.StreamID.String())
		}
	})
	if unknown != nil {
		streams, err := queries.StreamNames(ctx, tx, unknown)
		if err != nil {
			return err
		}
		for _, s := range streams {
			f.names[s.StreamID] = streamName{s.TenantID, s.StreamKey}
		}
	}
	each(func(e *entry) {
		n := f.names[e.StreamID]
		e.Tree, e.TenantID, e.StreamKey = f.tree, n.tenant, n.key
	})
	return nil
}

// merge takes what is read ahead in order, until a lane runs empty that isn't at its end.
func (f *feed) merge() []*entry {
	p := &page{tree: f.tree, epoch: f.epoch, start: make([]lane, len(f.lanes))}
	var ready lanes
	for i := range f.lanes {
		l := &f.lanes[i]
		p.start[i] = lane{generation: l.generation, partition: l.partition, place: l.place}
		if len(l.ahead) > 0 {
			ready = append(ready, l)
		}
	}
	heap.Init(&ready)
	var records []*entry
	for len(ready) > 0 {
		l := ready[0]
		e := &l.ahead[0]
		l.place = place{e.Offset + 1, e.HLC, true}
		p.steps = append(p.steps, step{l.partition, l.place})
		if e.matches {
			e.page, e.nth = p, len(p.steps)
			records = append(records, e)
		}
		l.ahead = l.ahead[1:]
		if len(l.ahead) > 0 {
			heap.Fix(&ready, 0)
		} else if l.unread() {
			break
		} else {
			heap.Pop(&ready)
		}
	}
	return records
}

// lanes is a heap of what comes next.
type lanes []*lane

func (h lanes) Len() int { return len(h) }

func (h lanes) Less(i, j int) bool {
	a, b := &h[i].ahead[0], &h[j].ahead[0]
	return a.HLC < b.HLC || a.HLC == b.HLC && a.Partition < b.Partition
}

func (h lanes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *lanes) Push(l any) { *h = append(*h, l.(*lane)) }

func (h *lanes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// page is what was merged at once. It is what the cursors of its records are made from, when they are asked for.
type page struct {
	tree  string
	epoch uuid.UUID
	start []lane
	steps []step
}

type step struct {
	partition int
	place
}

// cursor returns the cursor after some steps.
func (p *page) cursor(steps int) Cursor {
	places := make(map[int]place, len(p.start))
	for _, s := range p.steps[:steps] {
		places[s.partition] = s.place
	}
	last := p.steps[steps-1].partition
	generation := p.start[slices.IndexFunc(p.start, func(l lane) bool { return l.partition == last })].generation
	return cursorOf(p.epoch, p.tree, generation, func(yield func(int, place) bool) {
		for _, l := range p.start {
			if l.generation != generation {
				continue
			}
			at, moved := places[l.partition]
			if !moved {
				at = l.place
			}
			if !yield(l.partition, at) {
				return
			}
		}
	})
}

// end is the cursor after a feed that was read.
func (f *feed) end() Cursor {
	generation := f.lanes[len(f.lanes)-1].generation
	return cursorOf(f.epoch, f.tree, generation, func(yield func(int, place) bool) {
		for _, l := range f.lanes {
			if l.generation == generation && !yield(l.partition, l.place) {
				return
			}
		}
	})
}

func cursorOf(epoch uuid.UUID, tree string, generation int, places iter.Seq2[int, place]) Cursor {
	c := Cursor{epoch: epoch, tree: tree, generation: generation, offsets: map[int]int64{}, after: map[int]int64{}}
	for partition, at := range places {
		c.offsets[partition] = at.offset
		if at.hasAfter {
			c.after[partition] = at.after
		}
	}
	return c
}
