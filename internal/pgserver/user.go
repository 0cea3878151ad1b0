package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged is who runs the server when this process is root, which PostgreSQL refuses.
type unprivileged struct {
	name     string
	uid, gid int
}

func lookupUnprivileged() (*unprivileged, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, err
		}
		return &unprivileged{name, uid, gid}, nil
	}
	return nil, errors.New("PostgreSQL doesn't run as root, and there is no user postgres or nobody to run it as")
}

// own gives the directory to the user, and says which of its parents keeps the user out.
func (u *unprivileged) own(ctx context.Context, dir string) error {
	if err := os.Chown(dir, u.uid, u.gid); err != nil {
		return fmt.Errorf("give the data directory to user %s: %w", u.name, err)
	}
	var path string
	for part := range strings.SplitSeq(filepath.ToSlash(dir), "/") {
		path += part + "/"
		if command(ctx, u, "test", "-x", path) != nil {
			return fmt.Errorf("PostgreSQL doesn't run as root, and user %s may not enter %s: choose another data directory", u.name, path)
		}
	}
	return nil
}

// command runs a program and puts what it printed into the error.
func command(ctx context.Context, u *unprivileged, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/" // the user may not be allowed into the current one
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if u != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid)}}
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, strings.TrimSpace(string(output)))
	}
	return nil
}
