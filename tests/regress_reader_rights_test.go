package tests

import "testing"

// Readers could call verify_perspective and wait_for_perspective, which then had no right to what they read.
func TestReaderRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.exec(`grant usage on schema app to rewind_reader`)
	w.append("s", testEvent{at: 10, v: 1})
	w.apply()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	for _, statement := range []string{
		`set local role rewind_reader`,
		`select from rewind.verify_perspective('p')`,
		`select from rewind.wait_for_perspective('p', '{"0": 0}', '1s')`,
		`select from rewind.load_perspective_snapshot('p', 's')`,
		`select from lens.p`,
	} {
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
