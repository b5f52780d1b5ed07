package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A printer writes a command's one result: JSON for programs, lines for people.
type printer struct {
	out, err io.Writer
	json     bool
	failed   error // of the writing
}

// print writes v, or the lines that stand for it on a terminal.
func (p *printer) print(v any, lines func(w io.Writer)) {
	if !p.json {
		var text bytes.Buffer
		lines(&text)
		// A name or a reason must not move the cursor of whoever reads it.
		visible := bytes.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' {
				return utf8.RuneError
			}
			return r
		}, text.Bytes())
		if _, err := p.out.Write(visible); err != nil {
			p.failed = &localError{err}
		}
		return
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		p.failed = &localError{err}
	}
}

// longRun is how many rows make a command long enough to show its progress.
const longRun = 20_000

// progress shows how far a long command is, on a terminal only.
func (p *printer) progress(what string) func(done, total int64) {
	if !isTerminal(p.err) {
		return nil
	}
	last := int64(-1)
	return func(done, total int64) {
		if total < longRun {
			return
		}
		if percent := done * 100 / total; percent != last {
			last = percent
			fmt.Fprintf(p.err, "\r%s %d%% (%d of %d)", what, percent, done, total)
			if percent == 100 {
				fmt.Fprintln(p.err)
			}
		}
	}
}

func gate(pass bool) scenario.Gate {
	if pass {
		return scenario.Pass
	}
	return scenario.Block
}

// A localError is I/O that failed on the way to the user, not on the ledger.
type localError struct{ cause error }

func (e *localError) Error() string { return "input or output failed" }
func (e *localError) Unwrap() error { return e.cause }

// A fixtureIOError says that a scenario file could not be read. Its text leaves
// the path out: a log of the gate must not carry it.
type fixtureIOError struct{ cause error }

func (e *fixtureIOError) Error() string {
	switch {
	case errors.Is(e.cause, os.ErrNotExist):
		return "the file does not exist"
	case errors.Is(e.cause, os.ErrPermission):
		return "the file may not be read"
	}
	return "the file cannot be read"
}
func (e *fixtureIOError) Unwrap() error { return e.cause }

// printError writes the one JSON object that a command prints when it could not
// run. The message comes from errors that name rules and places and never a
// path, a stack or a stored value; others are not repeated.
func printError(w io.Writer, err error) {
	code, message := describe(err)
	var v struct {
		Gate  scenario.Gate `json:"gate"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	v.Gate = gate(false)
	v.Error.Code, v.Error.Message = code, message
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

func describe(err error) (code, message string) {
	var io *fixtureIOError
	var cannot *scenario.CannotRunError
	var database *engine.Error
	switch {
	case errors.As(err, &io):
		return "FIXTURE_IO_ERROR", io.Error()
	case errors.As(err, &cannot):
		return "FIXTURE_CONTRACT_ERROR", cannot.Error()
	case errors.Is(err, scenario.ErrFixture):
		return "FIXTURE_CONTRACT_ERROR", err.Error()
	case errors.Is(err, toolruntime.ErrContract):
		return "PERSISTENCE_CONTRACT_ERROR", err.Error()
	case errors.As(err, &database) && strings.HasPrefix(database.Code, "postgres"):
		return "POSTGRESQL_ERROR", databaseMessage(err)
	case errors.Is(err, toolruntime.ErrDatabase):
		return "SQLITE_ERROR", databaseMessage(err)
	case errors.Is(err, toolruntime.ErrInvalidInput):
		return "INVALID_VALUE", err.Error()
	}
	return "LOCAL_IO_ERROR", "the command was interrupted, or input or output failed"
}

// databaseMessage says what to do about a database's error.
func databaseMessage(err error) string {
	for _, m := range []struct {
		kind error
		text string
	}{
		{toolruntime.ErrBusy, "another process holds the database; try again"},
		{toolruntime.ErrFull, "no space is left for the database"},
		{toolruntime.ErrReadOnly, "the database may not be written"},
		{toolruntime.ErrCorrupt, "the file is damaged or is no database"},
		{toolruntime.ErrCannotOpen, "the database cannot be opened"},
		{toolruntime.ErrUnavailable, "the database server cannot be reached"},
		{toolruntime.ErrConstraint, "the database refused a row"},
	} {
		if errors.Is(err, m.kind) {
			return m.text
		}
	}
	return "the database failed"
}
