package main

// description says what a result is of, and what Rewind aims at.
type description struct{ what, aim string }

var descriptions = map[string]description{
	"append_single":     {"`append_events` with one event, 8 clients", "≥ 0.4"},
	"append_batch":      {"`append_batch` of 1,000 events of 20 streams, 4 clients", "≥ 0.5"},
	"append_batch_wide": {"`append_batch` of 1,000 events of 1,000 streams, 4 clients", "≥ 0.2"},
	"append_scaling":    {"single appends: how much faster 8 clients are than 1", "≥ 0.7"},
	"append_snapshot":   {"single appends while a snapshot has been open for 30 s", "≥ 0.9"},
	"wakeup":            {"`rewind.Append` by 64 writers, with wake-ups", "≥ 0.9"},

	"live_sql":            {"live path in SQL, 100 events a stream, analysed", "≥ 0.4"},
	"live_sql_cold":       {"the same, never analysed", "≥ 0.4"},
	"live_sql_short":      {"live path in SQL, 5 events a stream, analysed", "≥ 0.2"},
	"live_sql_short_cold": {"the same, never analysed", "≥ 0.2"},
	"live_go":             {"a worker with a fold in Go, 100 events a stream", "≥ 0.7"},
	"rebuild":             {"blue-green rebuild by a worker, until it is shown", "≥ 0.7"},
	"rebuild_one":         {"the same, one batch at a time", ""},
	"verify":              {"`verify_perspective`", "≥ 0.5"},

	"late_20":      {"5,000 events/s in 1,000 streams, 20 % late by up to 3 s: folded", "≤ 4"},
	"late_20_p99":  {"the same: commit to lens, 99th percentile", "≤ 1,000 ms"},
	"late_20_rate": {"the same: what the producer got through", "1"},
	"latency_p50":  {"200 appends/s in 100 streams: commit to lens, median", ""},
	"latency_p99":  {"the same, 99th percentile", "≤ 250 ms"},
	"idle":         {"a worker with nothing to do", "≤ 60"},

	"rewind_depth":        {"an event late by 100, repaired in its batch", "≤ 1.5"},
	"rewind_depth_locked": {"the same by the rewind path", "≤ 1.5"},
	"rewind_100000th":     {"an event late by 10 of 1,000,000", ""},
	"rewind_10000th":      {"by 100", ""},
	"rewind_1000th":       {"by 1,000", ""},
	"rewind_100th":        {"by 10,000", ""},
	"rewind_10th":         {"by 100,000", ""},
	"rewind_full":         {"an event late by 100 in 10,000: folded", "≤ 0.03"},
	"rewind_full_wall":    {"an event late by 100 in 100,000: time", "≤ 0.05"},
	"storm_0s":            {"10,000 events of one stream in random order, at once", "≤ 1.1"},
	"storm_1s":            {"the same, 100 batches 1 s apart", "≤ 3"},
	"storm_6s":            {"the same, 6 s apart, `defer_ratio` 0.25", "≤ 5"},

	"feed":          {"`Subscribe` over the whole log", "≥ 0.5"},
	"feed_sql":      {"`read_feed`, pages of 5,000", "≥ 0.25"},
	"feed_sql_1000": {"the same, pages of 1,000", "–"},
	"feed_first":    {"the first record of the whole log in Go", "≤ 50"},
	"feed_last":     {"the last 1,000 records of the whole log in Go", "1"},
	"memory_feed":   {"peak heap while `Subscribe` reads 1,000,000 records", "≤ 32 MB above"},

	"memory_replay": {"peak heap of a worker that replays a stream of 1,000,000 in Go", "≤ 128 MB"},

	"growth_events":         {"live path over a log that is 8 times as long", ""},
	"growth_streams":        {"live path, the same events in 20 times as many streams", ""},
	"growth_partitions_1":   {"live path, 1 partition", ""},
	"growth_partitions_512": {"live path, 512 partitions", ""},
	"growth_perspectives":   {"a worker folding 4 perspectives", ""},
	"growth_late_5":         {"live path, 5 % late by up to 15 events of their stream", ""},
	"growth_late_20":        {"the same, 20 % late", ""},
	"growth_late_50":        {"the same, 50 % late", ""},

	"hot_stream":       {"single appends of 8 clients to one stream", ""},
	"hot_stream_batch": {"`append_events` with 100 events to one stream, 1 client", ""},

	"disk_event":    {"an event in `rewind.wal`, with its three indexes", ""},
	"disk_cursor":   {"a cursor with its model, and index", ""},
	"disk_snapshot": {"a snapshot, and index", ""},
	"hot_updates":   {"updates of cursors that touch no index", ""},
	"bloat":         {"the table of 1,000 cursors after 100 updates of each", ""},
}
