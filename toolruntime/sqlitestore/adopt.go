package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/db"
	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// legacyTables are those of persistent-tool-runtime-v3, children first.
var legacyTables = []string{"local_receipts", "outbox", "downstream_receipts", "operations", "call_bindings", "runtime_metadata"}

// adopt moves a v3 database's rows into the ledger's tables, which first makes
// and rest brings up to date, and returns how many. It runs inside the
// migration's transaction.
func adopt(ctx context.Context, conn *sql.Conn, first, rest func() error) (rows int64, err error) {
	before, err := countLegacy(ctx, conn)
	if err != nil {
		return 0, err
	}
	for _, table := range legacyTables {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("ALTER TABLE %s RENAME TO v3_%s", table, table)); err != nil {
			return 0, err
		}
	}
	if err := first(); err != nil {
		return 0, err
	}
	if _, err := conn.ExecContext(ctx, db.AdoptV3); err != nil {
		return 0, err
	}
	if err := rest(); err != nil {
		return 0, err
	}
	if err := addEvidence(ctx, conn); err != nil {
		return 0, err
	}
	for _, table := range legacyTables {
		if _, err := conn.ExecContext(ctx, "DROP TABLE v3_"+table); err != nil {
			return 0, err
		}
	}
	after, err := countLegacy(ctx, conn)
	if err != nil {
		return 0, err
	}
	for table, n := range before {
		if table != "runtime_metadata" {
			rows += n
			if after[table] != n {
				return 0, fmt.Errorf("%w: %s had %d rows and would have %d", engine.ErrContract, table, n, after[table])
			}
		}
	}
	_, err = conn.ExecContext(ctx, "INSERT INTO runtime_metadata (metadata_key, metadata_value) VALUES ('adopted_from', ?)", legacyVersion)
	return rows, err
}

func countLegacy(ctx context.Context, conn *sql.Conn) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, table := range legacyTables {
		var n int64
		if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
			return nil, err
		}
		counts[table] = n
	}
	return counts, nil
}

const adoptPage = 500

// addEvidence computes what v3 did not keep: the digest of every row, and which
// operation a call identity was about, as far as that can be known (the first
// call of an operation, and its status query).
func addEvidence(ctx context.Context, conn *sql.Conn) error {
	q := dbgen.New(conn)
	for after := int64(0); ; {
		page, err := q.ListOperations(ctx, dbgen.ListOperationsParams{AfterPK: after, Page: adoptPage})
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := addOperationEvidence(ctx, conn, q, o); err != nil {
				return err
			}
			after = o.OperationPK
		}
		if len(page) < adoptPage {
			break
		}
	}
	for after := int64(0); ; {
		page, err := q.ListDownstreamReceipts(ctx, dbgen.ListDownstreamReceiptsParams{AfterPK: after, Page: adoptPage})
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := update(ctx, conn, "UPDATE downstream_receipts SET row_digest = ? WHERE downstream_pk = ?",
				tables.DownstreamReceipts.Digest(&r), r.DownstreamPK); err != nil {
				return err
			}
			after = r.DownstreamPK
		}
		if len(page) < adoptPage {
			break
		}
	}
	return addCallEvidence(ctx, conn, q)
}

func addOperationEvidence(ctx context.Context, conn *sql.Conn, q *dbgen.Queries, o dbgen.Operation) error {
	if err := update(ctx, conn, "UPDATE operations SET row_digest = ? WHERE operation_pk = ?", tables.Operations.Digest(&o), o.OperationPK); err != nil {
		return err
	}
	// Rows that v3 has lost stay so: the audit reports it.
	e, err := q.GetEvent(ctx, o.OperationPK)
	if err == nil {
		err = update(ctx, conn, "UPDATE outbox SET row_digest = ? WHERE operation_pk = ?", tables.Outbox.Digest(&e), o.OperationPK)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	r, err := q.GetLocalReceipt(ctx, o.OperationPK)
	if err == nil {
		err = update(ctx, conn, "UPDATE local_receipts SET row_digest = ? WHERE operation_pk = ?", tables.LocalReceipts.Digest(&r), o.OperationPK)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	first := toolresult.Call{ExecutionContext: toolresult.ExecutionContext{
		Provider: o.FirstProvider, APIFamily: o.FirstAPIFamily, ResponseID: o.FirstResponseID, CallID: o.FirstCallID}}
	for _, c := range []toolresult.Call{first, first.StatusQuery(o.StatusRef)} {
		if err := update(ctx, conn, `UPDATE call_bindings SET status_ref = ?
			WHERE tenant_id = ? AND subject_id = ? AND provider = ? AND api_family = ? AND response_id = ? AND call_id = ?`,
			o.StatusRef, o.TenantID, o.SubjectID, c.Provider, c.APIFamily, c.ResponseID, c.CallID); err != nil {
			return err
		}
	}
	return nil
}

func addCallEvidence(ctx context.Context, conn *sql.Conn, q *dbgen.Queries) error {
	last := dbgen.CallBinding{}
	for {
		page, err := q.ListCallBindings(ctx, dbgen.ListCallBindingsParams{
			TenantID: last.TenantID, SubjectID: last.SubjectID, Provider: last.Provider,
			APIFamily: last.APIFamily, ResponseID: last.ResponseID, CallID: last.CallID, Page: adoptPage})
		if err != nil {
			return err
		}
		for _, b := range page {
			if err := update(ctx, conn, `UPDATE call_bindings SET row_digest = ?
				WHERE tenant_id = ? AND subject_id = ? AND provider = ? AND api_family = ? AND response_id = ? AND call_id = ?`,
				tables.CallBindings.Digest(&b), b.TenantID, b.SubjectID, b.Provider, b.APIFamily, b.ResponseID, b.CallID); err != nil {
				return err
			}
			last = b
		}
		if len(page) < adoptPage {
			return nil
		}
	}
}

func update(ctx context.Context, conn *sql.Conn, query string, args ...any) error {
	_, err := conn.ExecContext(ctx, query, args...)
	return err
}
