// Package sql embeds the database schema: schema.sql, the migrations (tables) and the bundle (functions).
package sql

import "embed"

// FS holds what is applied in this order.
//
//go:embed schema.sql migrations/*.sql functions/*.sql
var FS embed.FS
