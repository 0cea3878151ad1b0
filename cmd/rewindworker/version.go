package main

import (
	"fmt"
	"runtime/debug"

	"github.com/rewindpg/rewind/migrate"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *versionCmd) Run(g *globals) error {
	v := struct {
		Version string `json:"version"`
		Schema  int    `json:"schema"`
	}{programVersion(), migrate.SchemaVersion}
	if c.JSON {
		return g.printJSON(v)
	}
	_, err := fmt.Fprintf(g.stdout, "rewindworker %s, schema %d\n", v.Version, v.Schema)
	return err
}

// programVersion is that of the module as Go built it: "(devel)" in a working copy.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
