// Package tables says once what there is to know of the ledger's tables: their columns,
// which are the fields of the rows that sqlc has generated, in the order of the table; and
// the digest of a row. Whatever goes through a row column by column does so here, so that
// a new column is told of in a migration, and nowhere else.
//
// The row_digest of a row is the SHA-256 over the table's name and every other column, in
// the table's order, so that a column that was changed past the runtime no longer fits its
// row. The encoding is injective for any bytes, also those that no JSON can hold: a text or
// blob is its length, a colon and its bytes; an integer is "i", its decimal digits and "e";
// NULL is "n". An auditor can recompute it with a few lines in any language.
//
// Not covered are the keys that the database assigns (operation_pk in operations, which
// the event's payload binds, downstream_pk and ending_pk, which no row names), and in an
// event what follows from other columns: its lane, and when it is due while it is not
// waiting for a next attempt. A column that was added to a table later is left out while
// it has the value that earlier rows have, so that their digests fit.
package tables

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// A Table is what is known of a table with rows of type R.
type Table[R any] struct {
	Name    string
	Columns []Column

	cover   []coverage[R] // of each column
	digest  int           // the place of row_digest
	covered []byte        // what every digest begins with
}

// A Column of a table.
type Column struct {
	Name string
	Kind Kind
}

// A Kind says what a column holds.
type Kind int

// The kinds of columns.
const (
	Text Kind = iota
	Integer
	Blob
	NullText
	NullInteger
)

var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[string](): Text, reflect.TypeFor[int64](): Integer, reflect.TypeFor[[]byte](): Blob,
	reflect.TypeFor[sql.NullString](): NullText, reflect.TypeFor[sql.NullInt64](): NullInteger,
}

// A coverage says how a digest covers a column, where it does so in a way of its own.
type coverage[R any] struct {
	// label goes before the value, so that columns which may be left out are told apart.
	label string
	// without tells of which rows the digest leaves it out.
	without func(*R) bool
}

func never[R any]() coverage[R] { return coverage[R]{without: func(*R) bool { return true }} }

// All are the columns of every table here, in the table's order, by its name.
var All = map[string][]Column{}

// describe reads the columns off R. special are those that the digest does not cover like
// any other.
func describe[R any](name string, special map[string]coverage[R]) *Table[R] {
	t := &Table[R]{Name: name, covered: appendText(nil, name)}
	row := reflect.TypeFor[R]()
	for i := range row.NumField() {
		kind, known := kinds[row.Field(i).Type]
		column := Column{snake(row.Field(i).Name), kind}
		if !known {
			panic(fmt.Sprintf("tables: %s.%s is a %v", name, column.Name, row.Field(i).Type))
		}
		cover := special[column.Name]
		delete(special, column.Name)
		if column.Name == "row_digest" {
			t.digest, cover = i, never[R]()
		}
		t.Columns, t.cover = append(t.Columns, column), append(t.cover, cover)
	}
	if len(special) > 0 {
		panic(fmt.Sprintf("tables: %s has no such columns: %v", name, special))
	}
	All[name] = t.Columns
	return t
}

// snake is the name of the column that a field is of.
func snake(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(letters[i-1]) || unicode.IsDigit(letters[i-1]) ||
			i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Digest is what row_digest must be.
func (t *Table[R]) Digest(r *R) []byte {
	v := reflect.ValueOf(r).Elem()
	b := append(make([]byte, 0, 1024), t.covered...) // a row of usual size needs no more
	for i, c := range t.Columns {
		if cover := &t.cover[i]; cover.without != nil {
			if cover.without(r) {
				continue
			}
			if cover.label != "" {
				b = appendText(b, cover.label)
			}
		}
		b = appendValue(b, c.Kind, v.Field(i))
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

func appendValue(b []byte, kind Kind, v reflect.Value) []byte {
	switch kind {
	case Text:
		return appendText(b, v.String())
	case Integer:
		return append(strconv.AppendInt(append(b, 'i'), v.Int(), 10), 'e')
	case NullText, NullInteger:
		if !v.Field(1).Bool() {
			return append(b, 'n')
		}
		return appendValue(b, kind-NullText, v.Field(0))
	default:
		return appendText(b, string(v.Bytes()))
	}
}

func appendText(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}

// Seal gives a row the digest that it must have.
func (t *Table[R]) Seal(r *R) {
	reflect.ValueOf(r).Elem().Field(t.digest).SetBytes(t.Digest(r))
}

// Intact reports whether a row has the digest that it must have.
func (t *Table[R]) Intact(r *R) bool {
	return bytes.Equal(reflect.ValueOf(r).Elem().Field(t.digest).Bytes(), t.Digest(r))
}

// Arrays are the values of rows, a text for each column that is wanted, in the form of
// PostgreSQL's arrays; a row that is nil is NULL in every column. All columns are wanted
// where wanted is nil.
func (t *Table[R]) Arrays(rows []*R, wanted func(column string) bool) []string {
	var all []string
	for i, c := range t.Columns {
		if wanted != nil && !wanted(c.Name) {
			continue
		}
		b := []byte{'{'}
		for j, r := range rows {
			if j > 0 {
				b = append(b, ',')
			}
			if r == nil {
				b = append(b, "NULL"...)
			} else {
				b = appendElement(b, c.Kind, reflect.ValueOf(r).Elem().Field(i))
			}
		}
		all = append(all, string(append(b, '}')))
	}
	return all
}

func appendElement(b []byte, kind Kind, v reflect.Value) []byte {
	switch kind {
	case Text:
		b = append(b, '"')
		for s := v.String(); ; {
			i := strings.IndexAny(s, `"\`)
			if i < 0 {
				return append(append(b, s...), '"')
			}
			b = append(append(append(b, s[:i]...), '\\'), s[i])
			s = s[i+1:]
		}
	case Integer:
		return strconv.AppendInt(b, v.Int(), 10)
	case NullText, NullInteger:
		if !v.Field(1).Bool() {
			return append(b, "NULL"...)
		}
		return appendElement(b, kind-NullText, v.Field(0))
	default:
		return append(hex.AppendEncode(append(b, `"\\x`...), v.Bytes()), '"')
	}
}

// Texts are the values of a row, a text for each column that is wanted; a row that is nil,
// and NULL, is nil.
func (t *Table[R]) Texts(r *R, wanted func(column string) bool) []any {
	var all []any
	for i, c := range t.Columns {
		if wanted != nil && !wanted(c.Name) {
			continue
		}
		var text any
		if r != nil {
			text = textOf(c.Kind, reflect.ValueOf(r).Elem().Field(i))
		}
		all = append(all, text)
	}
	return all
}

func textOf(kind Kind, v reflect.Value) any {
	switch kind {
	case Text:
		return v.String()
	case Integer:
		return strconv.FormatInt(v.Int(), 10)
	case NullText, NullInteger:
		if !v.Field(1).Bool() {
			return nil
		}
		return textOf(kind-NullText, v.Field(0))
	default:
		return `\x` + hex.EncodeToString(v.Bytes())
	}
}

// Integers are values in the form of one of PostgreSQL's arrays.
func Integers(values []int64) string {
	b := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	return string(append(b, '}'))
}

// ChangedOperation tells which columns a move of an operation may change.
func ChangedOperation(column string) bool { return changedOperation[column] }

// ChangedEvent tells which columns of its event.
func ChangedEvent(column string) bool { return changedEvent[column] }

// Given tells which columns of receipts and endings the database does not assign.
func Given(column string) bool { return column != "downstream_pk" && column != "ending_pk" }

var (
	changedOperation = map[string]bool{"state": true, "updated_at": true, "completed_at": true, "reason": true, "row_digest": true}
	changedEvent     = map[string]bool{"state": true, "lease_owner": true, "lease_until": true, "attempt_count": true,
		"updated_at": true, "row_digest": true, "next_attempt_at": true, "decisions": true}
)
