package main

import (
	"context"
	"fmt"
)

type newEpochCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run gives the store a new epoch, so that the cursors of before are refused (RW012): after a backup was restored or a database cloned,
// they may count records that this one never had.
func (c *newEpochCmd) Run(ctx context.Context, g *globals) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	var result struct {
		Epoch string `json:"store_epoch"`
	}
	err = pool.QueryRow(ctx, `update rewind.settings set store_epoch = gen_random_uuid() returning store_epoch::text`).Scan(&result.Epoch)
	if err != nil {
		return err
	}
	if c.JSON {
		return g.printJSON(result)
	}
	_, err = fmt.Fprintf(g.stdout, "done: the epoch is %s, feed cursors of before are refused\n", result.Epoch)
	return err
}
