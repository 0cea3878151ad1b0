package pgserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rewindpg/rewind/internal/pgserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerStopsWithItsLastUser(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first, second := start(t, dir), start(t, dir)
	if first.URL("postgres") != second.URL("postgres") {
		t.Fatalf("two servers: %s and %s", first.URL("postgres"), second.URL("postgres"))
	}
	for range 2 { // stopping twice is stopping once
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	ping(t, second)
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pidFile(dir)); !os.IsNotExist(err) {
		t.Errorf("the server still runs: %v", err)
	}
}

func TestServerStaysForOtherClients(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server := start(t, dir)
	client, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("a client lost its server: %v", err)
	}
	again := start(t, dir)
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pidFile(dir)); !os.IsNotExist(err) {
		t.Errorf("the server still runs: %v", err)
	}
}

func TestServerStartsAfterACrash(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server := start(t, dir)
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `create table kept ()`); err != nil {
		t.Fatal(err)
	}
	pid := serverPid(t, dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server doesn't die")
		}
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stop a server that is dead: %v", err)
	}
	again := start(t, dir)
	conn, err = pgx.Connect(t.Context(), again.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `table kept`); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
}

// newDir isn't t.TempDir, whose parent is closed to the user that runs the server if the tests run as root.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rewind-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start also stops the server when the test ends, however it ends.
func start(t *testing.T, dir string) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	ping(t, server)
	return server
}

func ping(t *testing.T, server *pgserver.Server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func pidFile(dir string) string { return filepath.Join(dir, "data", "postmaster.pid") }

func serverPid(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(pidFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// After a crash of the machine another program of the same user may have the number that the server had.
func TestServerStartsWhenItsNumberIsReused(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/comm"); err != nil {
		t.Skip("what a process runs can't be seen here: ", err)
	}
	dir := newDir(t)
	server := start(t, dir)
	left, err := os.ReadFile(pidFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	data, err := os.Stat(filepath.Dir(pidFile(dir)))
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	if owner := data.Sys().(*syscall.Stat_t); int(owner.Uid) != os.Geteuid() {
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	_, rest, _ := strings.Cut(string(left), "\n")
	if err := os.WriteFile(pidFile(dir), []byte(strconv.Itoa(other.Process.Pid)+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, dir)
	ping(t, again)
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
}
