package tests

import "testing"

// An initial model with a dollar quote in it ended the body of the generated fold, and ran what followed as the schema's owner.
func TestQuoting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	const odd = `%s %1$s "q"."r" '' \ $step$ $sql$ €`
	w.exec(`select from rewind.create_perspective($1, 't', 'app.chain(jsonb, rewind.event)', p_event_types => $2, p_initial => $3)`,
		odd, []string{"happened", odd}, map[string]any{"digest": odd})
	w.append("s", testEvent{at: 20, v: 1}, testEvent{at: 10, v: 2})
	w.exec(`call rewind.catch_up($1)`, odd)
	if n := queryOne[int64](t, w.pool, `select count(*) from lens."%s %1$s ""q"".""r"" '' \ $step$ $sql$ €"`); n != 1 {
		t.Errorf("%d models", n)
	}
	if n := queryOne[int64](t, w.pool, `select count(*) from rewind.verify_perspective($1)`, odd); n != 0 {
		t.Errorf("%d problems", n)
	}
	w.exec(`select rewind.drop_perspective($1)`, odd)
}
