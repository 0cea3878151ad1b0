package tests

import (
	"errors"
	"testing"

	"github.com/rewindpg/rewind"
	"github.com/rewindpg/rewind/worker"
)

// The message of a failing fold in Go that the database takes for no text failed the batch, for ever, and every other stream with it.
func TestErrorThatIsNoText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.append("s", testEvent{at: 10, v: 1})
	w.append("other", testEvent{at: 10, v: 1})
	k := newWorker(t, w, worker.Config{Perspectives: []string{"g"}})
	register(t, k, worker.Perspective[chainModel]{
		Name: "g", Tree: "t", Options: map[string]any{"max_attempts": 2, "retry_backoff": "1ms"},
		Apply: func(model chainModel, event rewind.Event) (chainModel, error) {
			if event.StreamKey == "s" {
				return model, errors.New("bad \x00 \xff")
			}
			return applyChain(model, event)
		},
	})
	settle(t, w, k)
	if got := queryOne[string](t, w.pool, `select string_agg(stream_key || ': ' || coalesce(error, 'none'), ', ' order by stream_key)
		from rewind.perspective_cursors join rewind.streams using (stream_id)`); got != "other: none, s: bad \uFFFD \uFFFD" {
		t.Error(got)
	}
}
