package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/scenario"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
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
		shown := bytes.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return seen(r)
		}, text.Bytes())
		if _, err := p.out.Write(shown); err != nil {
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

// seen is a rune as a terminal may show it. A name or a reason must not move the cursor of
// whoever reads it, hide anything, or turn the order around in which it is read.
func seen(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
		return utf8.RuneError
	}
	return r
}

// visible is what somebody has written, for a line of text: it cannot begin another one.
func visible(text string) string { return strings.Map(seen, text) }

// line writes v on a line of its own, for programs that read one after the other.
func (p *printer) line(v any) {
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		p.failed = &localError{err}
	}
}

// text writes what is the same for programs and for people.
func (p *printer) text(lines func(w io.Writer)) {
	given := p.json
	p.json = false
	p.print(nil, lines)
	p.json = given
}

// age is how long ago something was, for a person.
func age(now, since time.Time) string {
	s := max(0, now.Unix()-unix(since))
	switch {
	case s < 2*60:
		return fmt.Sprintf("%d s", s)
	case s < 2*60*60:
		return fmt.Sprintf("%d min", s/60)
	case s < 2*24*60*60:
		return fmt.Sprintf("%d h", s/(60*60))
	}
	return fmt.Sprintf("%d days", s/(24*60*60))
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

// printError writes why a command could not run: one JSON object for programs, a
// line for people. The message comes from errors that name rules and places and never a
// path, a stack or a stored value; others are not repeated.
func printError(w io.Writer, err error, asJSON bool) {
	code, message := describe(err)
	if !asJSON {
		fmt.Fprintf(w, "toolruntime: %s (%s)\n", message, code)
		return
	}
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
	var session *pgstore.SessionError
	switch {
	case errors.As(err, &io):
		return "FIXTURE_IO_ERROR", io.Error()
	case errors.As(err, &cannot):
		return "FIXTURE_CONTRACT_ERROR", cannot.Error()
	case errors.Is(err, scenario.ErrFixture):
		return "FIXTURE_CONTRACT_ERROR", err.Error()
	case errors.Is(err, toolruntime.ErrNotInReview):
		return "INVALID_VALUE", "status-ref: the operation is not in review, or was resolved otherwise; `toolruntime show` says how it stands"
	case errors.Is(err, toolruntime.ErrBegun):
		return "INVALID_VALUE", "status-ref: an attempt of the operation has begun, or it has ended; `toolruntime show` says how it stands"
	case errors.Is(err, toolruntime.ErrContract):
		return "PERSISTENCE_CONTRACT_ERROR", err.Error()
	case errors.As(err, &session):
		return "POSTGRESQL_ERROR", session.Error()
	case errors.As(err, &database) && strings.HasPrefix(database.Code, "postgres"):
		return "POSTGRESQL_ERROR", databaseMessage(err)
	case errors.Is(err, toolruntime.ErrDatabase):
		return "SQLITE_ERROR", databaseMessage(err)
	case errors.Is(err, toolruntime.ErrInvalidInput):
		return "INVALID_VALUE", err.Error()
	}
	if errors.Is(err, context.Canceled) {
		return "LOCAL_IO_ERROR", "the command was interrupted"
	}
	return "LOCAL_IO_ERROR", "input or output failed"
}

// refusals are what a PostgreSQL server does not let in, by its code.
var refusals = map[string]string{
	"postgres 28000": "the server does not let the role in: it does not exist, or pg_hba.conf refuses it",
	"postgres 28P01": "the server refused the role or its password",
	"postgres 3D000": "the server has no such database: make it with createdb",
	"postgres 3F000": "the database has no such schema; `toolruntime migrate` makes the ledger",
	"postgres 42501": "the role lacks a privilege that the ledger needs",
}

// databaseMessage says what to do about a database's error.
func databaseMessage(err error) string {
	var database *engine.Error
	if errors.As(err, &database) {
		if text, ok := refusals[database.Code]; ok {
			return text
		}
	}
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
