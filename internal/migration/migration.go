// Package migration reads the goose migrations that the library embeds.
//
// The library runs them itself, and keeps goose's bookkeeping, for two things
// that goose does not do: all of them in one transaction together with the
// adoption of another implementation's rows, and no dependency in the build of
// who imports the library.
package migration

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Migration is one file.
type Migration struct {
	Version int64
	Name    string // the file's name
	Up      string // SQL
}

// Load reads every .sql file of the tree, in the order of their versions.
func Load(tree fs.FS) ([]Migration, error) {
	files, err := fs.Glob(tree, "*.sql")
	if err != nil {
		return nil, err
	}
	var ms []Migration
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		m, err := parse(file, string(text))
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b Migration) int { return int(a.Version - b.Version) })
	for i := range ms {
		if i > 0 && ms[i].Version == ms[i-1].Version {
			return nil, fmt.Errorf("migration: %s and %s have one version", ms[i-1].Name, ms[i].Name)
		}
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("migration: no files")
	}
	return ms, nil
}

// Found says what a database is that is not at the last migration: which it is at,
// or else its name.
func Found(name string, version int64, all []Migration) string {
	if version == 0 {
		return name
	}
	return fmt.Sprintf("at migration %d of %d", version, all[len(all)-1].Version)
}

// parse takes the part between "-- +goose Up" and "-- +goose Down". A file that
// wants to run outside a transaction could be left half done, so it is refused.
func parse(file, text string) (Migration, error) {
	number, _, _ := strings.Cut(path.Base(file), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || version < 1 {
		return Migration{}, fmt.Errorf("migration: %s has no version", file)
	}
	_, up, found := strings.Cut(text, "-- +goose Up\n")
	if !found {
		return Migration{}, fmt.Errorf("migration: %s has no Up part", file)
	}
	up, _, _ = strings.Cut(up, "-- +goose Down")
	if strings.Contains(text, "+goose NO TRANSACTION") {
		return Migration{}, fmt.Errorf("migration: %s wants no transaction", file)
	}
	return Migration{Version: version, Name: path.Base(file), Up: up}, nil
}
