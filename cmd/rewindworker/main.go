// Command rewindworker migrates databases and keeps perspectives up to date.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rewindpg/rewind/migrate"
)

// Exit codes.
const (
	exitDone       = 0
	exitFailed     = 1 // something is wrong or went wrong
	exitUsage      = 2
	exitSchema     = 3 // the schema is missing, older or newer
	exitNotReached = 4 // the database
	exitUnread     = 128 + int(syscall.SIGPIPE)
)

// commands are the command line. Each command is in a file of its own and has a method Run(context.Context, *globals) error.
type commands struct {
	globals

	Demo        demoCmd        `cmd:"" help:"Show how late events are repaired."`
	Migrate     migrateCmd     `cmd:"" help:"Install or upgrade the schema."`
	Run         runCmd         `cmd:"" help:"Keep perspectives up to date, until stopped."`
	Import      importCmd      `cmd:"" help:"Append the events of a file."`
	Status      statusCmd      `cmd:"" help:"Show what perspectives, partitions, workers and appends are doing."`
	Verify      verifyCmd      `cmd:"" help:"Check that models equal the folds of their events."`
	Rewinds     rewindsCmd     `cmd:"" help:"List what was rewound."`
	Perspective perspectiveCmd `cmd:"" help:"Create and manage perspectives."`
	Quarantine  quarantineCmd  `cmd:"" help:"Decide about events that are too far in the future or too old."`
	Options     optionsCmd     `cmd:"" help:"Show and set options."`
	Doctor      doctorCmd      `cmd:"" help:"Look for what needs a person."`
	Bench       benchCmd       `cmd:"" help:"Measure what this server does, beside baselines."`
	Feed        feedCmd        `cmd:"" help:"Read and trim the change feed of a tree."`
	Tree        treeCmd        `cmd:"" help:"Move a tree on to other partitions."`
	NewEpoch    newEpochCmd    `cmd:"" name:"new-epoch" help:"Refuse the feed cursors of before, after a restore or a clone."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(ctx)
	signal.Ignore(syscall.SIGPIPE) // which would end this process at once; see pipe
	code := run(ctx, os.Args[1:], output(os.Stdout, end), output(os.Stderr, end), os.Getenv)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	var cli commands
	helped := false
	parser, err := kong.New(&cli,
		kong.Name("rewindworker"),
		kong.Description("Keeps read models right when events arrive late."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), // by --help alone
	)
	if err != nil {
		panic(err) // the commands are declared wrongly
	}
	kctx, err := parser.Parse(args)
	if helped {
		return exitDone
	}
	if errors.Is(context.Cause(ctx), syscall.EPIPE) {
		return exitUnread
	}
	if err != nil {
		fmt.Fprintf(stderr, "rewindworker: %v\nTry %s --help.\n", err, parsedCommand(err))
		return exitUsage
	}

	g := &cli.globals
	g.stdout, g.stderr, g.getenv = stdout, stderr, getenv
	g.logger = slog.New(slog.NewTextHandler(stderr, nil))
	kctx.BindTo(ctx, (*context.Context)(nil))
	err = errors.Join(kctx.Run(g), g.close())
	if errors.Is(context.Cause(ctx), syscall.EPIPE) {
		return exitUnread
	}
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = errInterrupted
		}
		fmt.Fprintln(stderr, "rewindworker:", err)
		if hint := hintFor(err); hint != "" {
			fmt.Fprintln(stderr, "hint:", hint)
		}
	}
	return exitCode(err)
}

// hintFor says what to do about an error of the database: here for what its own hints say in terms of SQL, or don't.
func hintFor(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	switch pgErr.Code {
	case "42501": // insufficient_privilege
		return "somebody has to grant this user rewind_reader, rewind_writer, rewind_worker or rewind_admin (docs/operations.md)"
	case "2BP01": // dependent_objects_still_exist
		return "drop before that what depends on it: " + pgErr.Detail
	}
	return pgErr.Hint
}

// parsedCommand is the command that was found in wrong arguments.
func parsedCommand(err error) string {
	var parseErr *kong.ParseError
	if errors.As(err, &parseErr) {
		for i := len(parseErr.Context.Path) - 1; i >= 0; i-- {
			if command := parseErr.Context.Path[i].Command; command != nil {
				return command.FullPath()
			}
		}
	}
	return "rewindworker"
}

var errInterrupted = errors.New("interrupted")

// usageError is a wrong use of a command that its flags' types don't show.
type usageError struct{ error }

func exitCode(err error) int {
	var usage usageError
	var config *pgconn.ParseConfigError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &config):
		return exitUsage
	case errors.Is(err, migrate.ErrSchemaMissing), errors.Is(err, migrate.ErrSchemaOlder), errors.Is(err, migrate.ErrSchemaNewer):
		return exitSchema
	case errors.As(err, &connect):
		return exitNotReached
	default:
		return exitFailed
	}
}
