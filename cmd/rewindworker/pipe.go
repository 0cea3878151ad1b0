package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/term"
)

// pipe is an output that somebody reads, who may stop reading, as head does. That ends the command as an interruption would, since what it has
// begun is to be ended in good order, above all a server of its own.
type pipe struct {
	file *os.File
	end  context.CancelCauseFunc
}

// output is a file that commands write to, a terminal or else a pipe.
func output(file *os.File, end context.CancelCauseFunc) io.Writer {
	if term.IsTerminal(int(file.Fd())) {
		return file
	}
	return pipe{file, end}
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.end(err)
	}
	return n, err
}
