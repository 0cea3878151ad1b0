package tests

import (
	"testing"

	"github.com/rewindpg/rewind/worker"
)

// While somebody held a stream's lock for one perspective, workers did not see that its rewind for another one was due.
func TestLockOfAnotherPerspective(t *testing.T) {
	t.Parallel()
	w := lateWorld(t, 20, 10)
	w.exec(`select from rewind.register_perspective('g', 't')`)
	w.exec(`select rewind.claim_perspective_stream_lock(active_generation, rewind.stream_id('t', 's'), 'somebody', 'inspection')
		from rewind.perspectives where perspective_name = 'g'`)
	w.exec(`select from rewind.set_options('{"startup_scan_enabled": false}')`)
	stop := start(t, newWorker(t, w, worker.Config{Perspectives: []string{"p"}}))
	eventually(t, func() bool { return w.cursor("s").Status == 2 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if found := w.verify(); len(found) > 0 {
		t.Errorf("verify_perspective: %v", found)
	}
}
