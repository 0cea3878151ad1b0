package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Who reads a generation that is dropped while that waits is told so, in the words of this project.
func TestReadersOfWhatIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dropped, read string }{
		"verify a generation":  {"drop_perspective_generation('p', 1)", `verify_perspective('p', p_options => '{"generation_id": 1}')`},
		"repair a generation":  {"drop_perspective_generation('p', 1)", `verify_perspective('p', p_options => '{"generation_id": 1, "repair": true}')`},
		"verify a perspective": {"drop_perspective('p')", `verify_perspective('p')`},
		"certify":              {"drop_perspective('p')", `certify_perspective('p')`},
		"explain":              {"drop_perspective('p')", `explain_model('p', 's')`},
		"look back":            {"drop_perspective('p')", `model_as_of('p', 's', p_time => now())`},
		"check":                {"drop_perspective('p')", `check_perspective('p')`},
		"preview":              {"drop_perspective('p')", `preview_event('p', 's', '{"type": "happened"}')`},
		"wait":                 {"drop_perspective('p')", `wait_for_perspective('p', '{"0": 0}', '1s')`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwoGenerations(t)
			reading := begin(t, w.pool, pgx.TxOptions{})
			dropping := begin(t, w.pool, pgx.TxOptions{})
			if _, err := dropping.Exec(t.Context(), `select from rewind.`+c.dropped); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				wantCode(t, reading, "RW018", `select from rewind.`+c.read)
			}()
			waitUntilBlocked(t, w.pool, reading.Conn().PgConn().PID())
			commit(t, dropping)
			<-done
		})
	}
}
