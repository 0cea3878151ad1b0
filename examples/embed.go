// Package examples holds what the examples consist of, for programs that show them.
package examples

import _ "embed"

var (
	// ApplyCommit creates the function examples.apply_commit.
	//go:embed commits/apply_commit.sql
	ApplyCommit string

	// ApplyOrder creates the function examples.apply_order.
	//go:embed orders/apply_order.sql
	ApplyOrder string

	// Orders are events for apply_order, one per line, in order of their arrival.
	//go:embed orders/orders.ndjson
	Orders string
)
