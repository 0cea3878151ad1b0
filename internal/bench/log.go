package bench

import (
	"cmp"
	"context"
	"fmt"
)

// fillChunk is how many events fill appends at once.
const fillChunk = 20_000

const defaultPartitions = 64

// logShape is what a tree has.
type logShape struct{ events, perStream, partitions int }

// filled returns a tree of a shape. It is made once, and not to be appended to.
func (e *env) filled(ctx context.Context, shape logShape) (tree string, err error) {
	if tree, ok := e.logs[shape]; ok {
		return tree, nil
	}
	e.logs[shape], err = e.newLog(ctx, shape)
	return e.logs[shape], err
}

// newLog makes a tree with so many events, in order, that go round the streams.
func (e *env) newLog(ctx context.Context, shape logShape) (tree string, err error) {
	tree = e.fresh("log")
	if err := e.exec(ctx, `select rewind.create_tree($1, $2)`, tree, cmp.Or(shape.partitions, defaultPartitions)); err != nil {
		return "", err
	}
	for from := 1; from <= shape.events; from += fillChunk {
		e.doing(fmt.Sprintf("appending %d of %d events", from-1, shape.events))
		to := min(from+fillChunk-1, shape.events)
		if err := e.exec(ctx, `select bench.append_round($1, $2, $3, $4)`, tree, shape.events/shape.perStream, from, to); err != nil {
			return "", err
		}
	}
	return tree, nil
}
