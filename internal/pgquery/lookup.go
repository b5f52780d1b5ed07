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
		known.take(&c, arg)
		return c.err
	}
	return s
}

// ByKey are settings of the server, each followed by its value, with which it plans by key,
// for tables of any size: it may know of tables that have grown since only that they were
// small. They are for one transaction; the server keeps the plans that it makes there for
// those who use the connection afterwards.
var ByKey = []string{"enable_seqscan", "off", "enable_hashjoin", "off", "enable_mergejoin", "off", "plan_cache_mode", "force_generic_plan"}

// LookupMany is LookupOnce for many, each into the known of the same place. It follows
// ByKey.
func LookupMany(path string, args []dbgen.LookupParams, known []*Known) Statement {
	texts := func(of func(*dbgen.LookupParams) string) string {
		list := make([]string, len(args))
		for i := range args {
			list[i] = of(&args[i])
		}
		return Array(list)
	}
	arg := postgres.LookupManyParams{
		TenantIds:       texts(func(p *dbgen.LookupParams) string { return p.TenantID }),
		SubjectIds:      texts(func(p *dbgen.LookupParams) string { return p.SubjectID }),
		ToolNames:       texts(func(p *dbgen.LookupParams) string { return p.ToolName }),
		IdempotencyKeys: texts(func(p *dbgen.LookupParams) string { return p.IdempotencyKey }),
		Providers:       texts(func(p *dbgen.LookupParams) string { return p.Provider }),
		APIFamilies:     texts(func(p *dbgen.LookupParams) string { return p.APIFamily }),
		ResponseIds:     texts(func(p *dbgen.LookupParams) string { return p.ResponseID }),
		CallIds:         texts(func(p *dbgen.LookupParams) string { return p.CallID }),
		Calls:           int64(len(args)), SearchPath: path,
	}
	s := recorded(func(ctx context.Context, q *postgres.Queries) error { return q.LookupMany(ctx, arg) })
	s.read = func(rows pgx.Rows) error {
		read := 0
		for ; rows.Next(); read++ {
			c := newColumns(rows)
			last := c.last()
			place := last.integer() - 1
			if last.err != nil || place < 0 || place >= int64(len(args)) {
				return errors.Join(last.err, errors.New("pgquery: a row of the lookup is nobody's"))
			}
			known[place].take(&c, args[place])
			if c.err != nil {
				return c.err
			}
		}
		switch {
		case read == 0:
			return noRow(rows)
		case read != len(args) && rows.Err() == nil:
			return errors.New("pgquery: a row of the lookup is missing")
		}
		return rows.Err()
	}
	return s
}

// take reads the answer to arg.
func (k *Known) take(c *columns, arg dbgen.LookupParams) {
	k.Found = c.values[0] != nil
	k.Row.Operation = dbgen.Operation{
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
	row := &k.Row
	row.ReceiptOf, row.ReceiptID, row.DownstreamRequestID = c.nullInteger(), c.nullText(), c.nullText()
	row.ReceiptRequest, row.ResultJSON, row.ReceiptProducer = c.nullText(), c.nullText(), c.nullText()
	row.ResourceRevision, row.ObservedAt, row.ReceiptEffect = c.nullText(), c.nullText(), c.nullText()
	row.ReconciledAt, row.ReceiptDigest = c.nullInteger(), c.blob()
	row.Attempts, row.Fingerprint = c.integer(), c.text()
	k.Free = dbgen.LookupFreeRow{Tombstones: c.integer(), Fingerprint: row.Fingerprint}
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

// last takes the last column off.
func (c *columns) last() *columns {
	n := len(c.values) - 1
	at := len(c.all) - len(c.values[n])
	last := &columns{values: c.values[n:], fields: c.fields[n:], all: c.all[at:]}
	c.values, c.fields, c.all = c.values[:n], c.fields[:n], c.all[:at]
	return last
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
