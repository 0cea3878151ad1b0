package rewind

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// What the functions of the database refuse, for [errors.Is]. Each stands for one SQLSTATE; docs/errors.md has them all.
var (
	ErrVersionConflict       = errors.New("rewind: stream version conflict")
	ErrEventIDReused         = errors.New("rewind: event id reused with other content")
	ErrEventIDNotV7          = errors.New("rewind: event id is not a UUIDv7")
	ErrTooFarInFuture        = errors.New("rewind: event is too far in the future")
	ErrUnknownTree           = errors.New("rewind: unknown tree")
	ErrUnknownPerspective    = errors.New("rewind: unknown perspective")
	ErrDefinitionConflict    = errors.New("rewind: exists with another definition")
	ErrLockLost              = errors.New("rewind: stream lock lost")
	ErrLockHeld              = errors.New("rewind: stream lock held by another")
	ErrCursorTrimmed         = errors.New("rewind: feed cursor lies in what was trimmed")
	ErrCursorAhead           = errors.New("rewind: feed cursor is ahead of the log")
	ErrCursorOfOtherHistory  = errors.New("rewind: feed cursor of another history")
	ErrHistoryIncomplete     = errors.New("rewind: history is incomplete")
	ErrGenerationNotWritable = errors.New("rewind: generation is not writable")
	ErrTooLate               = errors.New("rewind: event is older than the lateness horizon")
	ErrApplyFailed           = errors.New("rewind: apply failed")
	ErrMalformedEvent        = errors.New("rewind: malformed event")
	ErrUnknownGeneration     = errors.New("rewind: generation that never was")
	ErrTreeIsRead            = errors.New("rewind: tree is read by a perspective")
	ErrNotReadCommitted      = errors.New("rewind: needs READ COMMITTED")
)

// ErrNoModel, returned by the Apply of a perspective, says that the stream has no model now. Its next event starts from the initial one.
var ErrNoModel = errors.New("rewind: no model")

var sentinels = map[string]error{
	"RW001": ErrVersionConflict,
	"RW002": ErrEventIDReused,
	"RW003": ErrEventIDNotV7,
	"RW004": ErrTooFarInFuture,
	"RW005": ErrUnknownTree,
	"RW006": ErrUnknownPerspective,
	"RW007": ErrDefinitionConflict,
	"RW008": ErrLockLost,
	"RW009": ErrLockHeld,
	"RW010": ErrCursorTrimmed,
	"RW011": ErrCursorAhead,
	"RW012": ErrCursorOfOtherHistory,
	"RW013": ErrHistoryIncomplete,
	"RW014": ErrGenerationNotWritable,
	"RW015": ErrTooLate,
	"RW016": ErrApplyFailed,
	"RW017": ErrMalformedEvent,
	"RW018": ErrUnknownGeneration,
	"RW019": ErrTreeIsRead,
	"RW020": ErrNotReadCommitted,
}

// Error is what the database refused. It matches the sentinel of its code, and unwraps to the *pgconn.PgError that it came as, if it did.
type Error struct {
	// Doing says what was tried.
	Doing string
	// Code is the SQLSTATE: RW001 and so on, or one of PostgreSQL's own. 40001 asks for the transaction to be tried again.
	Code    string
	Message string
	// Detail is JSON for the codes of this project, else text.
	Detail string
	// Hint says what to do about it.
	Hint string

	cause error
}

// Error says what was tried and why it was refused, of several events by the first.
func (e *Error) Error() string {
	text := fmt.Sprintf("rewind: %s: %s", e.Doing, e.Message)
	if events := e.Events(); len(events) > 0 && events[0].Reason != "" {
		text += fmt.Sprintf(": event %d, %s: %s", events[0].Index, events[0].Field, events[0].Reason)
		if more := len(events) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return text + fmt.Sprintf(" (SQLSTATE %s)", e.Code)
}

// Is reports whether target is the sentinel of the error's code.
func (e *Error) Is(target error) bool {
	return target != nil && sentinels[e.Code] == target
}

// Unwrap returns the error of the driver.
func (e *Error) Unwrap() error { return e.cause }

// EventError is a complaint about one event of a call.
type EventError struct {
	// Index counts from 0, in the order of the call.
	Index  int    `json:"index"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Events returns the complaints about single events, if that is what the error is about.
func (e *Error) Events() []EventError {
	var detail struct {
		Errors []EventError `json:"errors"`
	}
	if json.Unmarshal([]byte(e.Detail), &detail) != nil {
		return nil
	}
	return detail.Errors
}

// wrap turns what the database refused into an *Error, and says of any other error what was tried.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		own.Doing = doing
		return own
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		own := &Error{Doing: doing, Code: pgErr.Code, Message: pgErr.Message, Detail: pgErr.Detail, Hint: pgErr.Hint, cause: err}
		if pgErr.Code == "3F000" && strings.Contains(pgErr.Message, `"rewind"`) {
			own.Message += ", rewindworker migrate installs it"
		}
		return own
	}
	return fmt.Errorf("rewind: %s: %w", doing, err)
}

// asMalformed gives its proper code to an event that already PostgreSQL's parser refused.
func asMalformed(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && slices.Contains([]string{"22P02", "22P05", "22021", "22003"}, pgErr.Code) {
		return &Error{Code: "RW017", Message: "malformed event: " + pgErr.Message, Detail: pgErr.Detail, Hint: pgErr.Hint, cause: err}
	}
	return err
}

func malformedError(events []EventError) error {
	detail, err := json.Marshal(map[string]any{"errors": events})
	if err != nil {
		panic(err) // numbers and strings
	}
	return &Error{Code: "RW017", Message: "malformed event", Detail: string(detail)}
}
