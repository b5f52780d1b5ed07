package pgquery

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

func (s *Queries) AuditAttempts(ctx context.Context, arg dbgen.AuditAttemptsParams) ([]dbgen.Attempt, error) {
	rows, err := s.q.AuditAttempts(ctx, postgres.AuditAttemptsParams(arg))
	return list(rows, func(r postgres.Attempt) dbgen.Attempt { return dbgen.Attempt(r) }, s.classify(err))
}

func (s *Queries) AuditDownstreamReceipts(ctx context.Context, arg dbgen.AuditDownstreamReceiptsParams) ([]dbgen.AuditDownstreamReceiptsRow, error) {
	rows, err := s.q.AuditDownstreamReceipts(ctx, postgres.AuditDownstreamReceiptsParams(arg))
	return list(rows, func(r postgres.AuditDownstreamReceiptsRow) dbgen.AuditDownstreamReceiptsRow {
		return dbgen.AuditDownstreamReceiptsRow(r)
	}, s.classify(err))
}

func (s *Queries) AuditEvents(ctx context.Context, arg dbgen.AuditEventsParams) ([]dbgen.Outbox, error) {
	rows, err := s.q.AuditEvents(ctx, postgres.AuditEventsParams(arg))
	return list(rows, func(r postgres.Outbox) dbgen.Outbox { return dbgen.Outbox(r) }, s.classify(err))
}

func (s *Queries) AuditLocalReceipts(ctx context.Context, arg dbgen.AuditLocalReceiptsParams) ([]dbgen.LocalReceipt, error) {
	rows, err := s.q.AuditLocalReceipts(ctx, postgres.AuditLocalReceiptsParams(arg))
	return list(rows, func(r postgres.LocalReceipt) dbgen.LocalReceipt { return dbgen.LocalReceipt(r) }, s.classify(err))
}

func (s *Queries) AuditOperations(ctx context.Context, arg dbgen.AuditOperationsParams) ([]dbgen.AuditOperationsRow, error) {
	rows, err := s.q.AuditOperations(ctx, postgres.AuditOperationsParams(arg))
	return list(rows, func(r postgres.AuditOperationsRow) dbgen.AuditOperationsRow {
		return dbgen.AuditOperationsRow{Operation: dbgen.Operation(r.Operation), FirstFingerprint: r.FirstFingerprint}
	}, s.classify(err))
}

func (s *Queries) AuditFewRows(ctx context.Context, most int64) (int64, error) {
	v, err := s.q.AuditFewRows(ctx, most)
	return v, s.classify(err)
}

func (s *Queries) AuditOrphanReceipts(ctx context.Context, arg dbgen.AuditOrphanReceiptsParams) ([]dbgen.AuditOrphanReceiptsRow, error) {
	rows, err := s.q.AuditOrphanReceipts(ctx, postgres.AuditOrphanReceiptsParams(arg))
	return list(rows, func(r postgres.AuditOrphanReceiptsRow) dbgen.AuditOrphanReceiptsRow {
		return dbgen.AuditOrphanReceiptsRow(r)
	}, s.classify(err))
}

func (s *Queries) AuditRejectedReceipts(ctx context.Context, arg dbgen.AuditRejectedReceiptsParams) ([]dbgen.RejectedReceipt, error) {
	rows, err := s.q.AuditRejectedReceipts(ctx, postgres.AuditRejectedReceiptsParams(arg))
	return list(rows, func(r postgres.RejectedReceipt) dbgen.RejectedReceipt { return dbgen.RejectedReceipt(r) }, s.classify(err))
}

func (s *Queries) AuditResolutions(ctx context.Context, arg dbgen.AuditResolutionsParams) ([]dbgen.Resolution, error) {
	rows, err := s.q.AuditResolutions(ctx, postgres.AuditResolutionsParams(arg))
	return list(rows, func(r postgres.Resolution) dbgen.Resolution { return dbgen.Resolution(r) }, s.classify(err))
}

func (s *Queries) AuditScopeAfter(ctx context.Context, arg dbgen.AuditScopeAfterParams) (dbgen.AuditScopeAfterRow, error) {
	row, err := s.q.AuditScopeAfter(ctx, postgres.AuditScopeAfterParams(arg))
	return dbgen.AuditScopeAfterRow(row), s.classify(err)
}

func (s *Queries) AuditTombstones(ctx context.Context, arg dbgen.AuditTombstonesParams) ([]dbgen.AuditTombstonesRow, error) {
	rows, err := s.q.AuditTombstones(ctx, postgres.AuditTombstonesParams(arg))
	return list(rows, func(r postgres.AuditTombstonesRow) dbgen.AuditTombstonesRow {
		return dbgen.AuditTombstonesRow{Tombstone: dbgen.Tombstone(r.Tombstone), Operations: r.Operations}
	}, s.classify(err))
}

func (s *Queries) NextAuditKey(ctx context.Context, fromPK int64) (dbgen.NextAuditKeyRow, error) {
	row, err := s.q.NextAuditKey(ctx, fromPK)
	return dbgen.NextAuditKeyRow(row), s.classify(err)
}
