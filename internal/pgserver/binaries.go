package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const oldestVersion = 15

// findBinaries returns the directory of the newest PostgreSQL found, or of the given major version if there is one to be matched:
// what Debian's packages install, what pg_config names, what is in PATH, and in the end what can be downloaded.
func findBinaries(ctx context.Context, major string) (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(dirs, func(a, b string) int { return debianVersion(b) - debianVersion(a) })
	if output, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(output)))
	}
	if program, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(program))
	}
	for _, dir := range dirs {
		version := versionOf(ctx, dir)
		if version >= oldestVersion && (major == "" || major == strconv.Itoa(version)) {
			return dir, nil
		}
	}
	if major != "" {
		return "", fmt.Errorf("the data directory is of PostgreSQL %s, which isn't installed here", major)
	}
	return download()
}

func debianVersion(dir string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // what is no number sorts last
	return version
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// versionOf returns the major version of a directory's programs, 0 if a server can't be made with them.
func versionOf(ctx context.Context, dir string) int {
	for _, program := range []string{"initdb", "pg_ctl"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return 0
		}
	}
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		return 0
	}
	version, _ := strconv.Atoi(string(match[1])) // digits by the pattern
	return version
}

// download fetches PostgreSQL into the user's cache. The library fetches by starting a server of its own, so this one is stopped again.
func download() (string, error) {
	if os.Geteuid() == 0 {
		return "", errors.New("no PostgreSQL 15 or newer found: install it (as root it isn't downloaded)")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rewind", "postgres")
	if bin := filepath.Join(dir, "bin"); versionOf(context.Background(), bin) != 0 {
		return bin, nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	runtime, err := os.MkdirTemp("", "rewind-download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(runtime)
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		BinariesPath(dir).RuntimePath(runtime).Port(uint32(port)).Logger(io.Discard))
	if err := server.Start(); err != nil {
		return "", fmt.Errorf("no PostgreSQL 15 or newer found, and downloading it failed: %w", err)
	}
	if err := server.Stop(); err != nil {
		return "", fmt.Errorf("stop the server that was started to download PostgreSQL: %w", err)
	}
	return filepath.Join(dir, "bin"), nil
}
