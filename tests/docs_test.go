package tests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/sql"
)

func readDoc(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/functions.md has every public function with its signature and errors as they are.
func TestDocsFunctions(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	normal := func(signature string) string {
		signature = strings.NewReplacer("timestamp with time zone", "timestamptz", "integer", "int").Replace(signature)
		signature = regexp.MustCompile(`(?i)(default ('[^']*'|\w+))::[\w ]+(\[\])?`).ReplaceAllString(signature, "$1")
		signature = strings.ReplaceAll(signature, "IN p_", "p_")
		return strings.ToLower(strings.Join(strings.Fields(signature), ""))
	}
	want := texts(t, pool, `
		select concat(case prokind when 'p' then 'procedure ' end, 'rewind.', proname, '(', pg_get_function_arguments(oid), ')',
		  ' returns ' || pg_get_function_result(oid))
		from pg_proc
		where pronamespace = 'rewind'::regnamespace and not starts_with(proname, '_') and prorettype <> 'trigger'::regtype`)
	doc := readDoc(t, "docs/functions.md")
	var got []string
	for _, block := range codeBlocks(t, "../docs/functions.md") {
		got = append(got, normal(block.code))
	}
	for i := range want {
		want[i] = normal(want[i])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("signatures (-catalog +docs/functions.md):\n", diff)
	}

	codes := regexp.MustCompile(`RW\d{3}|42P13|22023|40001`)
	for _, section := range strings.Split(doc, "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		_, documented, _ := strings.Cut(body, "\nErrors: ")
		documented, _, _ = strings.Cut(documented, "\n")
		files, err := fs.Glob(sql.FS, "functions/??_"+name+".sql")
		if err != nil || len(files) == 0 {
			t.Fatalf("function %s is in no file (%v)", name, err)
		}
		file := files[len(files)-1] // an internal of the same name but for "_" has a lower number
		text, err := fs.ReadFile(sql.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		comment, _, _ := strings.Cut(string(text), "create or replace")
		_, raised, _ := strings.Cut(comment, "Errors")
		if diff := cmp.Diff(unique(codes.FindAllString(raised, -1)), unique(codes.FindAllString(documented, -1))); diff != "" {
			t.Errorf("errors of %s (-%s +docs/functions.md):\n%s", name, file, diff)
		}
	}

	for _, shape := range texts(t, pool, `
		select format('| `+"`%s`"+` | %s |', c.oid::regclass, string_agg(format('`+"`%s`"+` %s', a.attname, format_type(a.atttypid, null)), ', ' order by a.attnum))
		from pg_class c
		join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.reltype in (
		  select prorettype from pg_proc where pronamespace = 'rewind'::regnamespace and not starts_with(proname, '_') and proretset)
		group by c.oid`) {
		shape = strings.NewReplacer("timestamp with time zone", "timestamptz", "integer", "int").Replace(shape)
		if !strings.Contains(doc, shape) {
			t.Errorf("docs/functions.md lacks %s", shape)
		}
	}
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// docs/operations.md has every option with its default, and says which have no effect.
func TestDocsOptions(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	var defaults map[string]json.RawMessage
	if err := pool.QueryRow(t.Context(), `select rewind._option_defaults()`).Scan(&defaults); err != nil {
		t.Fatal(err)
	}
	var used strings.Builder // all that may use an option
	for _, root := range []string{"../sql/functions", "../worker", "../queries"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || regexp.MustCompile(`_test\.go$|option_defaults|check_option_values|set_options`).MatchString(path) {
				return err
			}
			text, err := os.ReadFile(path)
			used.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (\\w+) \\| (.*) \\|$").FindAllStringSubmatch(readDoc(t, "docs/operations.md"), -1) {
		name, value, scope, meaning := row[1], row[2], row[3], row[4]
		if _, known := defaults[name]; !known {
			continue // a role
		}
		documented[name] = true
		var text any
		if err := json.Unmarshal(defaults[name], &text); err != nil {
			t.Fatal(err)
		}
		want := string(defaults[name])
		switch v := text.(type) {
		case nil:
			want = "none"
		case string:
			want = v
		}
		if value != want {
			t.Errorf("default of %s is %s, docs/operations.md says %s", name, want, value)
		}
		if saysUnused, isUsed := strings.Contains(meaning, "Not in effect yet"), strings.Contains(used.String(), name); saysUnused == isUsed {
			t.Errorf("docs/operations.md says of %s %q, and its being used is %t", name, meaning, isUsed)
		}
		_, err := pool.Exec(t.Context(), `select rewind._check_option_values(jsonb_build_object($1::text, null), $2)`, name, scope)
		if err != nil {
			t.Errorf("%s is no option of a %s: %v", name, scope, err)
		}
	}
	for name := range defaults {
		if !documented[name] {
			t.Errorf("docs/operations.md lacks option %s", name)
		}
	}
}

// Tests, files and commands that the documents name are there.
func TestDocsReferences(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var text []byte
			text, err = os.ReadFile(path)
			tests.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(readDoc(t, "ARCHITECTURE.md"), -1)
	if len(named) == 0 {
		t.Error("ARCHITECTURE.md names no tests")
	}
	for _, name := range unique(named) {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("ARCHITECTURE.md names %s, which there is not", name)
		}
	}
	for _, doc := range []string{
		"README.md", "ARCHITECTURE.md", "docs/operations.md", "docs/functions.md", "docs/errors.md", "docs/glossary.md",
		"docs/performance.md",
	} {
		text := readDoc(t, doc)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", filepath.Dir(doc), link[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
		for _, command := range regexp.MustCompile("`rewindworker ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("../cmd/rewindworker", strings.ReplaceAll(command[1], "-", "_")+".go")); err != nil {
				t.Errorf("%s: there is no command %s", doc, command[1])
			}
		}
	}
}

// What docs/operations.md says of backups: a restored database goes on from where it was.
func TestDumpAndRestore(t *testing.T) {
	t.Parallel()
	server := testdb.NewServer(t)
	pgDump, psql := server.Program("pg_dump"), server.Program("psql")
	if _, err := exec.LookPath(pgDump); err != nil {
		missing(t, "pg_dump beside the server's programs")
		return
	}
	admin := testdb.Open(t, server.URL("postgres"))
	mustExec(t, admin, "create database original")
	mustExec(t, admin, "create database restored")
	if _, err := migrateUp(t.Context(), server.URL("original")); err != nil {
		t.Fatal(err)
	}
	original := testdb.Open(t, server.URL("original"))
	execFile(t, original, "orders", "apply_order.sql")
	execFile(t, original, "orders", "perspective.sql")
	lines := bytes.SplitAfter([]byte(readDoc(t, "examples/orders/orders.ndjson")), []byte("\n"))
	importOrders := func(database string, lines [][]byte) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "orders.ndjson")
		if err := os.WriteFile(file, bytes.Join(lines, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, program(t), "import", "--database-url", server.URL(database), "--tree=example_orders", file)
	}
	importOrders("original", lines[:20])
	mustExec(t, original, `call rewind.catch_up('example_order_summary')`)
	importOrders("original", lines[20:30]) // in the log, and not yet in the models

	dump := filepath.Join(t.TempDir(), "dump.sql")
	run(t, pgDump, "--dbname", server.URL("original"), "--file", dump)
	run(t, psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL("restored"), "-f", dump)

	restored := testdb.Open(t, server.URL("restored"))
	for _, database := range []string{"original", "restored"} {
		importOrders(database, lines) // what was appended since
	}
	const models = `select format('%s %s', stream_key, model) from lens.example_order_summary order by stream_key`
	mustExec(t, original, `call rewind.catch_up('example_order_summary')`)
	mustExec(t, restored, `call rewind.catch_up('example_order_summary')`)
	if diff := cmp.Diff(texts(t, original, models), texts(t, restored, models)); diff != "" {
		t.Error("models (-original +restored):\n", diff)
	}
	if problems := texts(t, restored, `select problem from rewind.verify_perspective('example_order_summary')`); len(problems) > 0 {
		t.Error("the restored database has", problems)
	}
}
