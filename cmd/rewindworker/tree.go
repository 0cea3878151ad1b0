package main

import (
	"context"
	"fmt"
	"time"
)

type treeCmd struct {
	Repartition treeRepartitionCmd `cmd:"" help:"Move a tree on to another number of partitions."`
	Repoint     treeRepointCmd     `cmd:"" help:"Move a tree on to the log of another, empty tree."`
}

type treeRow struct {
	TreeName       string `json:"tree_name"`
	Generation     int    `json:"generation"`
	FirstPartition int    `json:"first_partition"`
	Partitions     int    `json:"partitions"`
}

// moveFlags are those of what moves a tree.
type moveFlags struct {
	Timeout time.Duration `default:"30s" help:"How long to wait for transactions that have appended and stay open (${default})."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

type treeRepartitionCmd struct {
	Tree       string `arg:"" help:"Tree to move."`
	Partitions int    `arg:"" help:"Number of partitions that it gets, 1 to 1024."`
	moveFlags
}

func (c *treeRepartitionCmd) Run(ctx context.Context, g *globals) error {
	return c.move(ctx, g, `rewind.repartition_tree(p_tree => $1, p_partitions => $2, p_options => $3)`, c.Tree, c.Partitions)
}

type treeRepointCmd struct {
	Tree string `arg:"" help:"Tree to move."`
	To   string `arg:"" help:"Tree whose partitions and options it gets; it ends as a tree of its own."`
	moveFlags
}

func (c *treeRepointCmd) Run(ctx context.Context, g *globals) error {
	return c.move(ctx, g, `rewind.repoint_tree(p_tree => $1, p_to => $2, p_options => $3)`, c.Tree, c.To)
}

func (f *moveFlags) move(ctx context.Context, g *globals, call, tree string, to any) error {
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	options := map[string]string{"timeout": fmt.Sprint(f.Timeout.Microseconds(), " microseconds")}
	moved, err := queryRows[treeRow](ctx, pool, `select tree_name, generation, first_partition, partitions from `+call, tree, to, jsonText(options))
	if err != nil {
		return err
	}
	if f.JSON {
		return printLines(g, moved)
	}
	_, err = fmt.Fprintf(g.stdout, "done: tree %s is appended to in %s from number %d on, its generation %d\n",
		moved[0].TreeName, count(int64(moved[0].Partitions), "partition"), moved[0].FirstPartition, moved[0].Generation)
	return err
}
