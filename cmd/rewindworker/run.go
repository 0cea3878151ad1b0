package main

import (
	"context"
	"fmt"
	"net"

	"github.com/rewindpg/rewind/worker"
)

type runCmd struct {
	UntilIdle    bool        `help:"End when nothing is left to read, to rewind or to catch up."`
	HTTP         httpAddress `name:"http" help:"Serve /metrics, /healthz and /readyz at HOST:PORT; :PORT is all addresses of this host, PORT loopback." placeholder:"ADDR"`
	Name         string      `help:"Name of this worker; else host, process id and something random."`
	Perspectives []string    `name:"perspective" sep:"none" help:"Perspective to fold; may be repeated. Else all that fold in SQL." placeholder:"NAME"`
	BatchSize    int         `help:"Most records of a batch; 0 means the default." default:"0"`
	Concurrency  int         `help:"Batches at once; 0 means what connections allow." default:"0"`
}

func (c *runCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if g.server != nil {
		g.note("connect while this runs: psql '%s'", g.server.URL("postgres"))
	}
	meters, metrics, err := newMeters()
	if err != nil {
		return err
	}
	w, err := worker.New(pool, worker.Config{
		Name: c.Name, Logger: g.logger, Perspectives: c.Perspectives, BatchSize: c.BatchSize, Concurrency: c.Concurrency,
		MeterProvider: meters,
	})
	if err != nil {
		return usageError{err}
	}
	work := w.Run
	if c.UntilIdle {
		work = w.RunUntilIdle
	}
	if c.HTTP == "" {
		return work(ctx)
	}
	listener, err := net.Listen("tcp", string(c.HTTP))
	if err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return serveWhile(ctx, listener, newHandler(w, metrics), g.logger, work)
}
