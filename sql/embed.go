// Package sql embeds the schema: migrations (tables) and the bundle (functions).
package sql

import "embed"

// FS holds migrations/*.sql and functions/*.sql.
//
//go:embed migrations/*.sql functions/*.sql
var FS embed.FS
