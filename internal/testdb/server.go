package testdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of wait.ForSQL
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/rewindpg/rewind/internal/pgserver"
)

const (
	defaultImage = "postgres:17"
	password     = "rewind"
)

// settings are for speed: no test server keeps its data beyond a crash of the machine. A crash of the server alone loses nothing.
var settings = map[string]string{
	"fsync":                     "off",
	"full_page_writes":          "off",
	"max_connections":           "300",
	"max_prepared_transactions": "10",
	"shared_buffers":            "256MB",
}

func startServer() (*server, error) {
	started = true
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()

	choice := os.Getenv("REWIND_TEST_SERVER")
	if choice == "" && os.Getenv("REWIND_TEST_DATABASE_URL") != "" {
		choice = "url"
	}
	switch choice {
	case "url":
		return useURL()
	case "testcontainers":
		return startContainer(ctx)
	case "embedded":
		return startEmbedded(ctx)
	case "":
		s, err := startContainer(ctx)
		if err == nil {
			return s, nil
		}
		announce("no container: %v", err)
		return startEmbedded(context.Background())
	default:
		return nil, fmt.Errorf("REWIND_TEST_SERVER is %q, not url, testcontainers or embedded", choice)
	}
}

func announce(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "testdb: "+format+"\n", args...)
}

func useURL() (*server, error) {
	text := os.Getenv("REWIND_TEST_DATABASE_URL")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && u.Path == "" {
		return nil, fmt.Errorf("REWIND_TEST_DATABASE_URL is no URL: %w", err)
	}
	announce("server of REWIND_TEST_DATABASE_URL, %s", u.Redacted())
	return &server{url: u, kept: true, stop: func() error { return nil }}, nil
}

func startContainer(ctx context.Context) (s *server, err error) {
	image := os.Getenv("REWIND_TEST_IMAGE")
	if image == "" {
		image = defaultImage
	}
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach a Docker daemon: %w", err)
	}
	if err := client.Close(); err != nil {
		return nil, err
	}

	command := []string{"postgres"}
	for name, value := range settings {
		command = append(command, "-c", name+"="+value)
	}
	address := func(host, port string) *url.URL {
		return &url.URL{
			Scheme: "postgres", Host: net.JoinHostPort(host, port), Path: "/postgres",
			User: url.UserPassword("postgres", password), RawQuery: "sslmode=disable",
		}
	}
	const port = "5432/tcp"
	container, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password}),
		testcontainers.WithCmd(command...),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithWaitStrategy(wait.ForSQL(port, "pgx", func(host string, port network.Port) string {
			return address(host, port.Port()).String()
		})))
	stop := func() error { return testcontainers.TerminateContainer(container) }
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("run image %s: %w", image, err)
	}
	host, err := container.Host(ctx)
	if err != nil {
		return nil, err
	}
	mapped, err := container.MappedPort(ctx, port)
	if err != nil {
		return nil, err
	}
	announce("container of %s", image)
	return &server{url: address(host, mapped.Port()), stop: stop}, nil
}

// guard waits until its standard input ends, which it does even if the test process is killed, and then does away with the server.
const guard = `
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
rm -rf "$1"
`

func startEmbedded(ctx context.Context) (*server, error) {
	s, stop, err := startGuarded(ctx, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(s.URL("postgres"))
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	announce("embedded server, %s", u.Redacted())
	return &server{url: u, stop: stop}, nil
}

// NewServer returns an embedded server that nobody else has. It goes when the test ends.
func NewServer(t testing.TB) *pgserver.Server {
	t.Helper()
	return startForTest(t, func(string) error { return nil })
}

// NewStandby returns a physical standby of a server, which reads and replays what that one writes. It goes when the test ends. It needs
// pg_basebackup among the server's programs.
func NewStandby(t testing.TB, primary *pgserver.Server) *pgserver.Server {
	t.Helper()
	return startForTest(t, func(dir string) error {
		u, err := url.Parse(primary.URL("postgres"))
		if err != nil {
			return err
		}
		secret, _ := u.User.Password()
		if err := os.WriteFile(filepath.Join(dir, "password"), []byte(secret), 0o600); err != nil {
			return err
		}
		cmd := exec.CommandContext(t.Context(), primary.Program("pg_basebackup"),
			"--dbname="+u.String(), "--pgdata="+filepath.Join(dir, "data"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
		output, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("pg_basebackup: %w: %s", err, output)
		}
		return primary.Own(filepath.Join(dir, "password"), filepath.Join(dir, "data"))
	})
}

func startForTest(t testing.TB, prepare func(dir string) error) *pgserver.Server {
	t.Helper()
	s, stop, err := startGuarded(t.Context(), prepare)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error("testdb:", err)
		}
	})
	return s
}

// startGuarded starts a server in a directory that goes with it; prepare is called with the directory before.
func startGuarded(ctx context.Context, prepare func(dir string) error) (s *pgserver.Server, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "rewind-test-")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("sh", "-c", guard, "guard", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests alone
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() error { return errors.Join(input.Close(), cmd.Wait()) }

	if err := prepare(dir); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	if s, err = pgserver.Start(ctx, pgserver.Config{Dir: dir, Settings: settings}); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return s, stop, nil
}
