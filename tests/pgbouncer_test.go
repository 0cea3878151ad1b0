package tests

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rewindpg/rewind/internal/testdb"
	"github.com/rewindpg/rewind/worker"
)

// behindPgBouncer returns a pool on the same database through a PgBouncer in transaction mode: hardly any two transactions of a
// connection run in the same session. Nil if there is no PgBouncer to test with.
func behindPgBouncer(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		missing(t, "pgbouncer")
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()

	server := pool.Config().ConnConfig
	password := server.Password
	if password == "" {
		password = "none" // PgBouncer takes no empty one; a server that trusts everybody doesn't ask
	}
	dir, err := os.MkdirTemp("", "rewind-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
`, server.Database, server.Host, server.Port, server.User, password, port)
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", ini}
	if os.Geteuid() == 0 { // PgBouncer refuses to be root
		args = append([]string{"-u", "nobody"}, args...)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bouncer := exec.Command(program, args...)
	bouncer.Stderr = os.Stderr
	if err := bouncer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		bouncer.Process.Kill()
		bouncer.Wait()
	})

	through := url.URL{
		Scheme: "postgres", User: url.User(server.User), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: server.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=exec",
	}
	eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), through.String())
		if err == nil {
			conn.Close(t.Context())
		}
		return err == nil
	})
	return testdb.Open(t, through.String())
}

// Behind a PgBouncer in transaction mode appends, both kinds of perspectives and rewinds work: nothing relies on a session's state.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	direct := newWorld(t, worldOptions{partitions: 4})
	pool := behindPgBouncer(t, direct.pool)
	if pool == nil {
		return
	}
	w := &world{t: t, pool: pool}
	k := newWorker(t, w, worker.Config{BatchSize: 20, PollInterval: time.Millisecond})
	register(t, k, worker.Perspective[chainModel]{Name: "in go", Tree: "t", Apply: applyChain, Options: map[string]any{"inline_rewind_events": 0, "debounce_window": "0s"}})

	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for n := range 60 {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer tx.Rollback(context.Background())
				appendEvents(t, tx, fmt.Sprint("s", random.IntN(6)), testEvent{at: 10*n - random.IntN(2)*random.IntN(200) + 2000, v: random.IntN(1000)})
				if random.IntN(5) == 0 {
					err = tx.Rollback(t.Context())
				} else {
					err = tx.Commit(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err := k.RunUntilIdle(t.Context()); err != nil {
		t.Error(err)
	}
	writers.Wait()
	if err := k.RunUntilIdle(t.Context()); err != nil {
		t.Error(err)
	}
	if n := queryOne[int64](t, pool, `select count(*) from lens.p a full join lens."in go" b using (stream_id) where a.model is distinct from b.model`); n > 0 {
		t.Errorf("%d models differ between SQL and Go", n)
	}
	w.exec(`select from rewind.drop_perspective('in go')`)
	w.checkSettled()
}
