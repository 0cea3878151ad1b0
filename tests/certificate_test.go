package tests

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// certificate is what certify_perspective says about a stream.
type certificate struct {
	Events              int64
	Digest, Certificate string
}

func (w *world) certificates() map[string]certificate {
	w.t.Helper()
	all := map[string]certificate{}
	rows, err := w.pool.Query(ctxOf(w.t), `select stream_key, events, digest, certificate from rewind.certify_perspective('p')`)
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		var stream string
		var c certificate
		if err := rows.Scan(&stream, &c.Events, &c.Digest, &c.Certificate); err != nil {
			w.t.Fatal(err)
		}
		all[stream] = c
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// In whatever order and batches events arrive, and however often one asked meanwhile, certificates are the same in the end.
func TestCertificates(t *testing.T) {
	t.Parallel()
	var events [][]testEvent
	for stream := range 4 {
		events = append(events, nil)
		for i := range 12 {
			events[stream] = append(events[stream], testEvent{id: at(10 * i), v: 1 + rand.IntN(20)})
		}
	}
	var want map[string]certificate
	for run := range 3 {
		w := newWorld(t, worldOptions{partitions: 2, options: map[string]any{"inline_rewind_events": 3}})
		for i, n := range rand.Perm(48) {
			w.append(fmt.Sprint("s", n%4), events[n%4][n/4])
			if i%(5+run) == 0 {
				w.catchUp()
				w.certificates()
			}
		}
		w.catchUp()
		got := w.certificates()
		if len(got) != 4 || got["s0"].Events != 12 {
			t.Fatalf("%+v", got)
		}
		if want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("certificates of run %d (-first +this):\n%s", run, diff)
		}
		w.exec(`delete from rewind.stream_digests`)
		if diff := cmp.Diff(got, w.certificates()); diff != "" {
			t.Errorf("certificates that are made at once (-bit by bit +at once):\n%s", diff)
		}

		w.exec(`update rewind.perspective_cursors set model = '{}' where stream_id = rewind.stream_id('t', 's1')`)
		w.append("s2", testEvent{at: 1000, v: 1})
		w.exec(`select from rewind.reset_perspective_cursor('p', 's3')`)
		for stream, changed := range map[string][2]bool{"s0": {}, "s1": {false, true}, "s3": {true, true}} {
			now := w.certificates()[stream]
			if (now.Digest != want[stream].Digest) != changed[0] || (now.Certificate != want[stream].Certificate) != changed[1] {
				t.Errorf("%s: %+v, before %+v", stream, now, want[stream])
			}
		}
		w.catchUp()
		now := w.certificates()
		if now["s3"] != want["s3"] || now["s2"].Events != 13 || now["s2"].Digest == want["s2"].Digest {
			t.Errorf("after all was applied: %+v, before %+v", now, want)
		}
	}
}

// Another version of the fold has other certificates, of the same events.
func TestCertificatesOfVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	w.catchUp()
	first := w.certificates()["s"]
	w.exec(`update rewind.perspective_generations set version = 2`)
	second := w.certificates()["s"]
	if first.Digest != second.Digest || first.Certificate == second.Certificate {
		t.Errorf("%+v, %+v", first, second)
	}
	wantCode(t, w.pool, "RW006", `select rewind.certify_perspective('unknown')`)
	wantCode(t, w.pool, "22023", `select rewind.certify_perspective('p', '{"max_streams": 0}')`)
	for _, statement := range []string{`begin read only`, `select rewind.certify_perspective('p')`, `rollback`} {
		w.exec(statement)
	}
}
