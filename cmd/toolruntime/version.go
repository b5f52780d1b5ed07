package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

func versionCommand() command {
	return command{
		name: "version", summary: "print the versions of the program, the schema and SQLite",
		example: `toolruntime version`,
		flags:   (*options).format,
		run:     version,
	}
}

func version(_ context.Context, _ *options, p *printer) (bool, error) {
	v := struct {
		Version       string `json:"version"`
		GoVersion     string `json:"go_version"`
		SchemaVersion string `json:"schema_version"`
		SQLiteVersion string `json:"sqlite_version"` // "" in a program without SQLite
	}{Version: moduleVersion(), SchemaVersion: engine.SchemaVersion, SQLiteVersion: sqliteVersion()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.GoVersion = info.GoVersion
	}
	p.print(v, func(w io.Writer) {
		lite := "without SQLite"
		if v.SQLiteVersion != "" {
			lite = "SQLite " + v.SQLiteVersion
		}
		fmt.Fprintf(w, "toolruntime %s, %s, schema %s, %s\n", v.Version, v.GoVersion, v.SchemaVersion, lite)
	})
	return true, nil
}

const modulePath = "github.com/toolruntime/toolruntime-go"

// moduleVersion is the version of this module, also in a program of another one
// that was built around its packages. A build of a checkout has the commit's.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if revision == "" {
		return "(devel)"
	}
	return strings.TrimSpace("(devel " + revision + changed + ")")
}
