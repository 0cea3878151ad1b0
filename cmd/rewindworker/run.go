package main

import (
	"context"

	"github.com/rewindpg/rewind/worker"
)

type runCmd struct {
	UntilIdle    bool     `help:"End when nothing is left to read, to rewind or to catch up."`
	Name         string   `help:"Name of this worker; else host, process id and something random."`
	Perspectives []string `name:"perspective" sep:"none" help:"Perspective to fold; may be repeated. Else all that fold in SQL." placeholder:"NAME"`
	BatchSize    int      `help:"Most records of a batch; 0 means the default." default:"0"`
	Concurrency  int      `help:"Batches at once; 0 means what connections allow." default:"0"`
}

func (c *runCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	w, err := worker.New(pool, worker.Config{
		Name: c.Name, Logger: g.logger, Perspectives: c.Perspectives, BatchSize: c.BatchSize, Concurrency: c.Concurrency,
	})
	if err != nil {
		return usageError{err}
	}
	if c.UntilIdle {
		return w.RunUntilIdle(ctx)
	}
	return w.Run(ctx)
}
