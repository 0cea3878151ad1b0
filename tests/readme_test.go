package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rewindpg/rewind/internal/testdb"
)

// codeBlock is a block of a Markdown file between fences.
type codeBlock struct{ language, code string }

func codeBlocks(t *testing.T, file string) (blocks []codeBlock) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, codeBlock{m[1], m[2]})
	}
	return blocks
}

// Each block of SQL is given to psql; a block of text after it is what psql prints.
func TestReadmeSQL(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		missing(t, "psql")
		return
	}
	url := testdb.NewURL(t)
	blocks := codeBlocks(t, "../README.md")
	ran := 0
	for i, block := range blocks {
		if block.language != "sql" {
			continue
		}
		ran++
		file := filepath.Join(t.TempDir(), "block.sql")
		if err := os.WriteFile(file, []byte(block.code), 0o600); err != nil {
			t.Fatal(err)
		}
		got := run(t, psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", file)
		if i+1 < len(blocks) && blocks[i+1].language == "text" {
			if diff := cmp.Diff(strings.TrimSpace(blocks[i+1].code), strings.TrimSpace(got)); diff != "" {
				t.Errorf("block %d of SQL (-README +psql):\n%s", ran, diff)
			}
		}
	}
	if ran < 3 {
		t.Errorf("the README has %d blocks of SQL", ran)
	}
}

// The program is run as it stands there; the block of text after it is what it prints. Its test stands after it, and passes.
func TestReadmeGo(t *testing.T) {
	t.Parallel()
	blocks := codeBlocks(t, "../README.md")
	ran := 0
	var program string
	for i, block := range blocks {
		if block.language != "go" {
			continue
		}
		ran++
		if strings.Contains(block.code, "func Test") {
			file := filepath.Join(filepath.Dir(program), "main_test.go")
			if err := os.WriteFile(file, []byte(block.code), 0o600); err != nil {
				t.Fatal(err)
			}
			if unformatted := run(t, "gofmt", "-l", file); unformatted != "" {
				t.Error("the test is not formatted by gofmt")
			}
			if output := run(t, "go", "test", "-v", program, file); !strings.Contains(output, "--- PASS: Test") {
				t.Error(output)
			}
			continue
		}
		file := filepath.Join(t.TempDir(), "main.go")
		program = file
		if err := os.WriteFile(file, []byte(block.code), 0o600); err != nil {
			t.Fatal(err)
		}
		if unformatted := run(t, "gofmt", "-l", file); unformatted != "" {
			t.Error("the program is not formatted by gofmt")
		}
		cmd := exec.CommandContext(t.Context(), "go", "run", file)
		cmd.Env = append(os.Environ(), "REWIND_DATABASE_URL="+testdb.NewURL(t))
		cmd.Stderr = t.Output()
		output, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := blocks[i+1].code; string(output) != want {
			t.Errorf("the program prints %q, want %q", output, want)
		}
	}
	if ran < 2 {
		t.Error("the README has no program with a test")
	}
}

// What people are told to run first.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	for _, block := range codeBlocks(t, "../README.md") {
		if block.language == "sh" {
			if want := "go run ./cmd/rewindworker demo\ngo test ./...\n"; block.code != want {
				t.Errorf("the commands are %q, want %q", block.code, want)
			}
			return
		}
	}
	t.Error("the README has no commands")
}
