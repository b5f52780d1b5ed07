package toolruntime

import (
	"context"
	"fmt"

	"github.com/toolruntime/toolruntime-go/internal/ledger"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// An AuditReport is what an audit of the ledger found. Nothing in it names a
// tenant, a subject, a tool or a key: rows are named by their status_ref.
type AuditReport struct {
	SchemaVersion     string `json:"schema_version"`
	SQLiteVersion     string `json:"sqlite_version,omitempty"`
	PostgreSQLVersion string `json:"postgresql_version,omitempty"`
	// Settings are the server's settings that durability rests on.
	Settings             map[string]string `json:"settings,omitempty"`
	JournalMode          string            `json:"journal_mode"`
	Synchronous          int64             `json:"synchronous"`
	IntegrityCheck       []string          `json:"integrity_check"`
	ForeignKeyViolations []string          `json:"foreign_key_violations"`
	// SemanticErrors are the rules that stored evidence breaks, as
	// AUDIT_CODE[status_ref] and, for most, what does not hold. At most
	// 1,000 are listed; the last line then says how many there are.
	SemanticErrors []string `json:"semantic_errors"`
	Counts         Counts   `json:"counts"`
	// Unregistered are operations whose tool, or whose revisions of it, this
	// runtime does not know: they were recomputed from what is stored and could
	// not be held against a registry. That is no error.
	Unregistered Unregistered `json:"unregistered"`
	Passed       bool         `json:"passed"`
}

// Unregistered counts operations and names the first of them.
type Unregistered struct {
	Count      int64    `json:"count"`
	StatusRefs []string `json:"status_refs"` // at most 100
}

// AuditOptions of [Runtime.Audit].
type AuditOptions struct {
	// Progress is called from time to time, by the goroutine that called Audit,
	// with how many rows were examined and how many there are. A snapshot may be
	// open meanwhile, so it must be short.
	Progress func(done, total int64)
}

// Audit examines the whole ledger in constant memory, beside the work that goes
// on: integrity and durability of the database, every row recomputed and held
// against the others, orphans of every kind. It changes nothing. A malformed
// stored value is a finding; an error means that the audit could not be made.
//
// It uses several processors where there are. The report does not depend on it:
// findings stand in the order of the rows.
func (rt *Runtime) Audit(ctx context.Context, opts *AuditOptions) (*AuditReport, error) {
	r, err := rt.audit(ctx, opts, ledger.AuditSizes)
	if err != nil {
		return nil, fmt.Errorf("toolruntime: audit: %w", err)
	}
	return r, nil
}

func (rt *Runtime) audit(ctx context.Context, opts *AuditOptions, by ledger.Sizes) (*AuditReport, error) {
	a, err := rt.ledger.Audit(ctx, ledger.Auditing{
		Profiles: rt.profiles,
		Spec: func(c toolresult.Contract) *toolresult.Spec {
			if t := rt.known(c); t != nil {
				return t.spec
			}
			return nil
		},
		Approved: rt.stillApproved,
		Progress: given(opts).Progress,
		Sizes:    by,
	})
	if err != nil {
		return nil, err
	}
	return &AuditReport{SchemaVersion: a.SchemaVersion, SQLiteVersion: a.Health.SQLiteVersion,
		PostgreSQLVersion: a.Health.PostgreSQLVersion, Settings: a.Health.Settings, JournalMode: a.Health.JournalMode,
		Synchronous: a.Health.Synchronous, IntegrityCheck: a.Health.IntegrityCheck,
		ForeignKeyViolations: a.Health.ForeignKeyViolations, SemanticErrors: a.Findings, Counts: Counts(a.Counts),
		Unregistered: Unregistered{Count: a.Unregistered, StatusRefs: a.UnregisteredRefs}, Passed: a.Passed}, nil
}

// stillApproved reports whether the approval of an operation that has not ended holds,
// as far as the host can say: about a principal that nobody knows any more nobody is
// asked, because it is denied.
func (rt *Runtime) stillApproved(ctx context.Context, c toolresult.Contract, owner toolresult.Principal, approver string) (bool, error) {
	t := rt.known(c)
	current, known, err := rt.resolve(ctx, t.timeout, owner)
	if err != nil || !known {
		return err == nil, err
	}
	return rt.mayApprove(ctx, t, current, approver)
}
