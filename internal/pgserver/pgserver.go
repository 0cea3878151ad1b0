// Package pgserver runs a PostgreSQL server in a directory, for one process or for several that share it.
package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
)

const (
	superuser    = "postgres"
	startTimeout = time.Minute
	// goneTimeout is how long a closed connection may take to leave the server's list.
	goneTimeout  = 2 * time.Second
	pollInterval = 20 * time.Millisecond
)

// Config of a server.
type Config struct {
	// Dir holds the cluster, its password, its log and the lock files. It is made if it isn't there.
	Dir string
	// Settings are given to a server that is started, not to one that is joined.
	Settings map[string]string
}

// Server is a running server that this process uses until Stop.
type Server struct {
	cluster *cluster
	url     *url.URL
	using   *flock.Flock
	stop    func() error
}

// Start joins the server of the directory if one runs, else starts it, on a free port of the loopback interface.
func Start(ctx context.Context, config Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	c, err := openCluster(ctx, config.Dir)
	if err != nil {
		return nil, err
	}
	// Starting and stopping exclude each other; using is shared, and the lock goes with the process.
	changing := flock.New(filepath.Join(c.dir, "change.lock"))
	if _, err := changing.TryLockContext(ctx, pollInterval); err != nil {
		return nil, fmt.Errorf("wait for another process that starts or stops the server in %s: %w", c.dir, err)
	}
	defer changing.Close()

	if !c.running(ctx) {
		if err := c.start(ctx, config.Settings); err != nil {
			return nil, err
		}
	}
	address, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{cluster: c, url: address, using: flock.New(filepath.Join(c.dir, "use.lock"))}
	if err := s.using.RLock(); err != nil {
		return nil, err
	}
	s.stop = sync.OnceValue(s.leave)
	return s, nil
}

// URL of a database of the server, for its superuser.
func (s *Server) URL(database string) string {
	return s.url.JoinPath(database).String()
}

// Program is the path of one of the server's own programs, which may not be installed.
func (s *Server) Program(name string) string { return filepath.Join(s.cluster.bin, name) }

// Stop ends this process' use of the server. The last one that uses it stops it, unless other clients are connected.
func (s *Server) Stop() error { return s.stop() }

func (s *Server) leave() error {
	defer s.using.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	changing := flock.New(filepath.Join(s.cluster.dir, "change.lock"))
	if _, err := changing.TryLockContext(ctx, pollInterval); err != nil {
		return fmt.Errorf("wait for another process that starts or stops the server in %s: %w", s.cluster.dir, err)
	}
	defer changing.Close()

	last, err := s.using.TryLock()
	if err != nil || !last {
		return err
	}
	if !s.cluster.running(ctx) {
		return nil
	}
	idle, err := s.idle(ctx)
	if err != nil || !idle {
		return err
	}
	return s.cluster.stop(ctx)
}

// idle tells whether nobody but this function is connected.
func (s *Server) idle(ctx context.Context) (bool, error) {
	conn, err := pgx.Connect(ctx, s.URL(superuser))
	if err != nil {
		return false, fmt.Errorf("connect to the server in %s: %w", s.cluster.dir, err)
	}
	defer conn.Close(ctx)
	deadline := time.Now().Add(goneTimeout)
	for {
		var others bool
		err := conn.QueryRow(ctx, `select exists (
			select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid())`).Scan(&others)
		if err != nil || !others || time.Now().After(deadline) {
			return !others, err
		}
		time.Sleep(pollInterval)
	}
}

// cluster is a directory with a database cluster and the programs that run it.
type cluster struct {
	dir  string // of the cluster's own directory, data, and what goes with it
	bin  string
	user *unprivileged // nil: this process' own
}

func openCluster(ctx context.Context, dir string) (*cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	c := &cluster{dir: dir}
	if os.Geteuid() == 0 {
		if c.user, err = lookupUnprivileged(); err != nil {
			return nil, err
		}
		if err := c.user.own(ctx, dir); err != nil {
			return nil, err
		}
	}
	version, err := os.ReadFile(filepath.Join(c.data(), "PG_VERSION"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	c.bin, err = findBinaries(ctx, strings.TrimSpace(string(version)))
	return c, err
}

func (c *cluster) data() string         { return filepath.Join(c.dir, "data") }
func (c *cluster) passwordFile() string { return filepath.Join(c.dir, "password") }
func (c *cluster) logFile() string      { return filepath.Join(c.dir, "server.log") }

// running tells whether the cluster's server process is alive; a pid file that a crash left behind doesn't count.
func (c *cluster) running(ctx context.Context) bool {
	c.forgetReused()
	return c.run(ctx, "pg_ctl", "status", "-D", c.data()) == nil
}

// forgetReused removes a pid file that a crash left behind if its number is another program's by now, as after a restart of the machine, since
// the server's programs would take that one for the server.
func (c *cluster) forgetReused() {
	file := filepath.Join(c.data(), "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	program, err := os.ReadFile(filepath.Join("/proc", filepath.Base(pid), "comm")) // on Linux
	if err == nil && strings.TrimSpace(string(program)) != "postgres" {
		os.Remove(file)
	}
}

func (c *cluster) start(ctx context.Context, settings map[string]string) error {
	if _, err := os.Stat(filepath.Join(c.data(), "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		if err := c.init(ctx); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	options := []string{"-c listen_addresses=127.0.0.1", "-c unix_socket_directories=''", "-c port=" + strconv.Itoa(port)}
	for name, value := range settings {
		options = append(options, fmt.Sprintf("-c %s='%s'", name, value))
	}
	err = c.run(ctx, "pg_ctl", "start", "-w", "-D", c.data(), "-l", c.logFile(), "-o", strings.Join(options, " "))
	if err != nil {
		return fmt.Errorf("start the server: %w\n%s", err, c.logTail())
	}
	return nil
}

// init makes the cluster beside its place and moves it there, so that a half-made one is never taken for a whole one.
func (c *cluster) init(ctx context.Context) error {
	fresh := c.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.WriteFile(c.passwordFile(), []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if c.user != nil {
		if err := os.Chown(c.passwordFile(), c.user.uid, c.user.gid); err != nil {
			return err
		}
	}
	err := c.run(ctx, "initdb", "-D", fresh, "-U", superuser, "--pwfile", c.passwordFile(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err != nil {
		return fmt.Errorf("make a database cluster in %s: %w", c.dir, err)
	}
	return os.Rename(fresh, c.data())
}

func (c *cluster) stop(ctx context.Context) error {
	if err := c.run(ctx, "pg_ctl", "stop", "-w", "-m", "fast", "-D", c.data()); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}

// connect waits until the running server takes connections and returns its address.
func (c *cluster) connect(ctx context.Context) (*url.URL, error) {
	password, err := os.ReadFile(c.passwordFile())
	if err != nil {
		return nil, err
	}
	for {
		port, err := c.port()
		if err == nil {
			address := &url.URL{
				Scheme: "postgres", Host: net.JoinHostPort("127.0.0.1", port),
				User: url.UserPassword(superuser, string(password)), RawQuery: "sslmode=disable",
			}
			var conn *pgx.Conn
			if conn, err = pgx.Connect(ctx, address.JoinPath(superuser).String()); err == nil {
				return address, conn.Close(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server in %s takes no connections: %w\n%s", c.dir, err, c.logTail())
		case <-time.After(pollInterval):
		}
	}
}

// port reads the fourth line of the server's pid file.
func (c *cluster) port() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 {
		return "", errors.New("the server's pid file isn't written yet")
	}
	return lines[3], nil
}

func (c *cluster) logTail() string {
	text, err := os.ReadFile(c.logFile())
	if err != nil {
		return ""
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "")
}

func (c *cluster) run(ctx context.Context, program string, args ...string) error {
	return command(ctx, c.user, filepath.Join(c.bin, program), args...)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Own gives files and directories, with all that is in them, to the user that the server runs as.
func (s *Server) Own(paths ...string) error {
	user := s.cluster.user
	if user == nil {
		return nil
	}
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, user.uid, user.gid)
		})
		if err != nil {
			return fmt.Errorf("give %s to user %s: %w", root, user.name, err)
		}
	}
	return nil
}
