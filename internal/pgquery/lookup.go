package pgquery

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

func (s *Queries) Lookup(ctx context.Context, arg dbgen.LookupParams) (dbgen.LookupRow, error) {
	row, err := s.q.Lookup(ctx, postgres.LookupParams(arg))
	return dbgen.LookupRow{
		Operation: dbgen.Operation(row.Operation), ReceiptOf: row.ReceiptOf, ReceiptID: row.ReceiptID,
		DownstreamRequestID: row.DownstreamRequestID, ReceiptRequest: row.ReceiptRequest, ResultJSON: row.ResultJSON,
		ReceiptProducer: row.ReceiptProducer, ResourceRevision: row.ResourceRevision, ObservedAt: row.ObservedAt,
		ReceiptEffect: row.ReceiptEffect, ReconciledAt: row.ReconciledAt, ReceiptDigest: row.ReceiptDigest,
		Attempts: row.Attempts, Fingerprint: row.Fingerprint,
	}, s.classify(err)
}

func (s *Queries) LookupFree(ctx context.Context, arg dbgen.LookupFreeParams) (dbgen.LookupFreeRow, error) {
	row, err := s.q.LookupFree(ctx, postgres.LookupFreeParams(arg))
	return dbgen.LookupFreeRow(row), s.classify(err)
}

// LookupTexts is SQLite's alone; here there is LookupOnce.
func (s *Queries) LookupTexts(context.Context, dbgen.LookupTextsParams) (dbgen.LookupTextsRow, error) {
	return dbgen.LookupTextsRow{}, errors.ErrUnsupported
}

// A Known is the answer to a Lookup and to the LookupFree that follows where there
// is no operation: a call that is new then costs one round trip and not two.
type Known struct {
	Found bool // there is an operation
	Row   dbgen.LookupRow
	Free  dbgen.LookupFreeRow
}

// LookupOnce reads what Lookup and LookupFree read, into known. A session with another
// search_path has read something else.
func LookupOnce(path string, arg dbgen.LookupParams, known *Known) Statement {
	s := recorded(func(ctx context.Context, q *postgres.Queries) error {
		return q.LookupOnce(ctx, postgres.LookupOnceParams(arg))
	})
	s.read = func(rows pgx.Rows) error {
		if !rows.Next() {
			return noRow(rows)
		}
		if values := rows.RawValues(); string(values[len(values)-1]) != path {
			return ErrElsewhere
		}
		c := newColumns(rows)
		known.Found = c.values[0] != nil
		o := &known.Row.Operation
		*o = dbgen.Operation{
			OperationPK: c.integer(), TenantID: arg.TenantID, SubjectID: arg.SubjectID, ToolName: arg.ToolName,
			IdempotencyKey: arg.IdempotencyKey, RequestSha256: c.text(), ArgumentsJSON: c.text(),
			InputSchemaRevision: c.text(), OutputSchemaRevision: c.text(), EffectRevision: c.text(),
			HandlerRevision: c.text(), ProducerRevision: c.text(), PolicyRevision: c.text(),
			ApprovalID: c.text(), ApproverID: c.text(), ApprovalDigest: c.text(), ApprovalExpiresAt: c.integer(),
			ApprovedAt: c.integer(), FirstOperationID: c.text(), FirstCallID: c.text(), FirstResponseID: c.text(),
			FirstProvider: c.text(), FirstAPIFamily: c.text(), FirstAdapterRevision: c.text(), StatusRef: c.text(),
			State: c.text(), CreatedAt: c.integer(), UpdatedAt: c.integer(), CompletedAt: c.nullInteger(), Reason: c.text(),
			RowDigest: c.blob(), EffectKind: c.text(),
		}
		row := &known.Row
		row.ReceiptOf, row.ReceiptID, row.DownstreamRequestID = c.nullInteger(), c.nullText(), c.nullText()
		row.ReceiptRequest, row.ResultJSON, row.ReceiptProducer = c.nullText(), c.nullText(), c.nullText()
		row.ResourceRevision, row.ObservedAt, row.ReceiptEffect = c.nullText(), c.nullText(), c.nullText()
		row.ReconciledAt, row.ReceiptDigest = c.nullInteger(), c.blob()
		row.Attempts, row.Fingerprint = c.integer(), c.text()
		known.Free = dbgen.LookupFreeRow{Tombstones: c.integer(), Fingerprint: row.Fingerprint}
		return c.err
	}
	return s
}

// columns are the values of a row, taken in their order. What is null is taken as
// the zero value.
type columns struct {
	values [][]byte
	fields []pgconn.FieldDescription
	all    string // the values, one after the other
	err    error
}

// newColumns copies the row of rows, in one piece: the driver needs its memory.
func newColumns(rows pgx.Rows) columns {
	c := columns{values: rows.RawValues(), fields: rows.FieldDescriptions()}
	var b strings.Builder
	n := 0
	for _, v := range c.values {
		n += len(v)
	}
	b.Grow(n)
	for _, v := range c.values {
		b.Write(v)
	}
	c.all = b.String()
	return c
}

// next takes a value; it is binary where it is of a type that the driver asks for so.
func (c *columns) next() (v string, there, binary bool) {
	n := len(c.values[0])
	v, there, binary = c.all[:n], c.values[0] != nil, c.fields[0].Format == pgx.BinaryFormatCode
	c.all, c.values, c.fields = c.all[n:], c.values[1:], c.fields[1:]
	return v, there, binary
}

func (c *columns) nullText() sql.NullString {
	v, there, _ := c.next()
	return sql.NullString{String: v, Valid: there}
}

func (c *columns) nullInteger() (i sql.NullInt64) {
	v, there, inBinary := c.next()
	var err error
	switch {
	case !there:
	case !inBinary:
		i.Int64, err = strconv.ParseInt(v, 10, 64)
	case len(v) == 8:
		i.Int64 = int64(binary.BigEndian.Uint64([]byte(v)))
	default:
		err = errors.New("pgquery: a column of the lookup is no BIGINT")
	}
	i.Valid = there
	c.err = errors.Join(c.err, err)
	return i
}

func (c *columns) text() string   { return c.nullText().String }
func (c *columns) integer() int64 { return c.nullInteger().Int64 }

func (c *columns) blob() []byte {
	v, there, inBinary := c.next()
	switch {
	case !there:
		return nil
	case inBinary:
		return []byte(v)
	}
	b, err := hex.DecodeString(strings.TrimPrefix(v, `\x`))
	c.err = errors.Join(c.err, err)
	return b
}
