// Package rewind is the client of Rewind, which keeps read models right when events arrive late.
//
// Events are appended to streams, and read back in chronology: the order in which things happened, whatever the order in which they
// arrived. Appending takes a pool, a connection or a transaction, so that it can be part of what the application writes anyway:
//
//	tx, err := pool.Begin(ctx)
//	// ... the application's own writes ...
//	appended, err := rewind.Append(ctx, tx, "orders", "order-17", []rewind.NewEvent{
//		{Type: "OrderPlaced", Payload: map[string]any{"amount": 12.5}},
//	}, rewind.ExpectedVersion(0))
//	if errors.Is(err, rewind.ErrVersionConflict) {
//		// somebody else was faster: read, decide again, append
//	}
//	err = tx.Commit(ctx)
//
// An append holds the lock of its stream's partition until the transaction ends, so append last, or name all streams first with
// [LockStreams]. Whatever the database refuses comes back as an [*Error] that matches one of the sentinels of this package.
package rewind
