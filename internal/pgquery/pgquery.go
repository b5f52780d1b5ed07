// Package pgquery is PostgreSQL's half of the seam between the databases: sqlc's
// PostgreSQL package as the [dbgen.Querier] that the store is written over.
//
// sqlc generates one package per database from the same query files. They differ
// in the marks of the parameters alone, so parameters and rows convert; where
// the two schemas drift apart, this package does not compile.
package pgquery

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

// Queries is a [dbgen.Querier] on PostgreSQL.
type Queries struct {
	q        *postgres.Queries
	classify func(error) error
}

var _ dbgen.Querier = (*Queries)(nil)

// New makes a Querier on db. Every error passes through classify, so that the
// store's transactions see the kinds of package engine.
func New(db postgres.DBTX, classify func(error) error) *Queries {
	return &Queries{q: postgres.New(db), classify: classify}
}

// list converts the rows of a page.
func list[To, From any](rows []From, convert func(From) To, err error) ([]To, error) {
	to := make([]To, len(rows))
	for i, row := range rows {
		to[i] = convert(row)
	}
	return to, err
}

func (s *Queries) CopyDownstreamReceipt(ctx context.Context, arg dbgen.CopyDownstreamReceiptParams) error {
	return s.classify(s.q.CopyDownstreamReceipt(ctx, postgres.CopyDownstreamReceiptParams(arg)))
}

func (s *Queries) CopyOperation(ctx context.Context, arg dbgen.CopyOperationParams) error {
	return s.classify(s.q.CopyOperation(ctx, postgres.CopyOperationParams(arg)))
}

func (s *Queries) CountRows(ctx context.Context) (dbgen.CountRowsRow, error) {
	row, err := s.q.CountRows(ctx)
	return dbgen.CountRowsRow(row), s.classify(err)
}

func (s *Queries) GetCallFingerprint(ctx context.Context, arg dbgen.GetCallFingerprintParams) (string, error) {
	v, err := s.q.GetCallFingerprint(ctx, postgres.GetCallFingerprintParams(arg))
	return v, s.classify(err)
}

func (s *Queries) GetClaimed(ctx context.Context, operationPK int64) (dbgen.GetClaimedRow, error) {
	row, err := s.q.GetClaimed(ctx, operationPK)
	return dbgen.GetClaimedRow{Operation: dbgen.Operation(row.Operation), Outbox: dbgen.Outbox(row.Outbox)}, s.classify(err)
}

func (s *Queries) GetDownstreamReceipt(ctx context.Context, arg dbgen.GetDownstreamReceiptParams) (dbgen.DownstreamReceipt, error) {
	row, err := s.q.GetDownstreamReceipt(ctx, postgres.GetDownstreamReceiptParams(arg))
	return dbgen.DownstreamReceipt(row), s.classify(err)
}

func (s *Queries) GetEvent(ctx context.Context, operationPK int64) (dbgen.Outbox, error) {
	row, err := s.q.GetEvent(ctx, operationPK)
	return dbgen.Outbox(row), s.classify(err)
}

func (s *Queries) GetLocalReceipt(ctx context.Context, operationPK int64) (dbgen.LocalReceipt, error) {
	row, err := s.q.GetLocalReceipt(ctx, operationPK)
	return dbgen.LocalReceipt(row), s.classify(err)
}

func (s *Queries) GetOperation(ctx context.Context, operationPK int64) (dbgen.Operation, error) {
	row, err := s.q.GetOperation(ctx, operationPK)
	return dbgen.Operation(row), s.classify(err)
}

func (s *Queries) GetOperationByRef(ctx context.Context, statusRef string) (dbgen.Operation, error) {
	row, err := s.q.GetOperationByRef(ctx, statusRef)
	return dbgen.Operation(row), s.classify(err)
}

func (s *Queries) GetOperationByScope(ctx context.Context, arg dbgen.GetOperationByScopeParams) (dbgen.Operation, error) {
	row, err := s.q.GetOperationByScope(ctx, postgres.GetOperationByScopeParams(arg))
	return dbgen.Operation(row), s.classify(err)
}

func (s *Queries) InsertCallBinding(ctx context.Context, arg dbgen.InsertCallBindingParams) (int64, error) {
	v, err := s.q.InsertCallBinding(ctx, postgres.InsertCallBindingParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertDownstreamReceipt(ctx context.Context, arg dbgen.InsertDownstreamReceiptParams) (int64, error) {
	v, err := s.q.InsertDownstreamReceipt(ctx, postgres.InsertDownstreamReceiptParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertEvent(ctx context.Context, arg dbgen.InsertEventParams) error {
	return s.classify(s.q.InsertEvent(ctx, postgres.InsertEventParams(arg)))
}

func (s *Queries) InsertLocalReceipt(ctx context.Context, arg dbgen.InsertLocalReceiptParams) (int64, error) {
	v, err := s.q.InsertLocalReceipt(ctx, postgres.InsertLocalReceiptParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertMetadata(ctx context.Context, arg dbgen.InsertMetadataParams) (int64, error) {
	v, err := s.q.InsertMetadata(ctx, postgres.InsertMetadataParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertOperation(ctx context.Context, arg dbgen.InsertOperationParams) (int64, error) {
	v, err := s.q.InsertOperation(ctx, postgres.InsertOperationParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertRejectedReceipt(ctx context.Context, arg dbgen.InsertRejectedReceiptParams) (int64, error) {
	v, err := s.q.InsertRejectedReceipt(ctx, postgres.InsertRejectedReceiptParams(arg))
	return v, s.classify(err)
}

func (s *Queries) ListCallBindings(ctx context.Context, arg dbgen.ListCallBindingsParams) ([]dbgen.CallBinding, error) {
	rows, err := s.q.ListCallBindings(ctx, postgres.ListCallBindingsParams(arg))
	return list(rows, func(r postgres.CallBinding) dbgen.CallBinding { return dbgen.CallBinding(r) }, s.classify(err))
}

func (s *Queries) ListDownstreamReceipts(ctx context.Context, arg dbgen.ListDownstreamReceiptsParams) ([]dbgen.DownstreamReceipt, error) {
	rows, err := s.q.ListDownstreamReceipts(ctx, postgres.ListDownstreamReceiptsParams(arg))
	return list(rows, func(r postgres.DownstreamReceipt) dbgen.DownstreamReceipt { return dbgen.DownstreamReceipt(r) }, s.classify(err))
}

func (s *Queries) ListMetadata(ctx context.Context) ([]dbgen.RuntimeMetadatum, error) {
	rows, err := s.q.ListMetadata(ctx)
	return list(rows, func(r postgres.RuntimeMetadatum) dbgen.RuntimeMetadatum { return dbgen.RuntimeMetadatum(r) }, s.classify(err))
}

func (s *Queries) ListOperations(ctx context.Context, arg dbgen.ListOperationsParams) ([]dbgen.Operation, error) {
	rows, err := s.q.ListOperations(ctx, postgres.ListOperationsParams(arg))
	return list(rows, func(r postgres.Operation) dbgen.Operation { return dbgen.Operation(r) }, s.classify(err))
}

func (s *Queries) ListRejectedReceipts(ctx context.Context, operationPK int64) ([]dbgen.RejectedReceipt, error) {
	rows, err := s.q.ListRejectedReceipts(ctx, operationPK)
	return list(rows, func(r postgres.RejectedReceipt) dbgen.RejectedReceipt { return dbgen.RejectedReceipt(r) }, s.classify(err))
}

func (s *Queries) MoveEvent(ctx context.Context, arg dbgen.MoveEventParams) (int64, error) {
	v, err := s.q.MoveEvent(ctx, postgres.MoveEventParams(arg))
	return v, s.classify(err)
}

func (s *Queries) MoveOperation(ctx context.Context, arg dbgen.MoveOperationParams) (int64, error) {
	v, err := s.q.MoveOperation(ctx, postgres.MoveOperationParams(arg))
	return v, s.classify(err)
}

func (s *Queries) ScopeTaken(ctx context.Context, arg dbgen.ScopeTakenParams) (dbgen.ScopeTakenRow, error) {
	row, err := s.q.ScopeTaken(ctx, postgres.ScopeTakenParams(arg))
	return dbgen.ScopeTakenRow(row), s.classify(err)
}

func (s *Queries) HoldCallBinding(ctx context.Context, arg dbgen.HoldCallBindingParams) (string, error) {
	v, err := s.q.HoldCallBinding(ctx, postgres.HoldCallBindingParams(arg))
	return v, s.classify(err)
}

func (s *Queries) InsertAttempt(ctx context.Context, arg dbgen.InsertAttemptParams) (int64, error) {
	v, err := s.q.InsertAttempt(ctx, postgres.InsertAttemptParams(arg))
	return v, s.classify(err)
}

func (s *Queries) ListAttempts(ctx context.Context, operationPK int64) ([]dbgen.Attempt, error) {
	rows, err := s.q.ListAttempts(ctx, operationPK)
	return list(rows, func(r postgres.Attempt) dbgen.Attempt { return dbgen.Attempt(r) }, s.classify(err))
}

func (s *Queries) ListAstray(ctx context.Context, arg dbgen.ListAstrayParams) ([]int64, error) {
	pks, err := s.q.ListAstray(ctx, postgres.ListAstrayParams(arg))
	return pks, s.classify(err)
}

func (s *Queries) ListDueInLane(ctx context.Context, arg dbgen.ListDueInLaneParams) ([]int64, error) {
	v, err := s.q.ListDueInLane(ctx, postgres.ListDueInLaneParams(arg))
	return v, s.classify(err)
}

func (s *Queries) LockDueInLane(ctx context.Context, arg dbgen.LockDueInLaneParams) ([]int64, error) {
	v, err := s.q.LockDueInLane(ctx, postgres.LockDueInLaneParams(arg))
	return v, s.classify(err)
}

func (s *Queries) NextLane(ctx context.Context, after string) (string, error) {
	v, err := s.q.NextLane(ctx, after)
	return v, s.classify(err)
}

func (s *Queries) CountInReview(ctx context.Context) ([]dbgen.CountInReviewRow, error) {
	rows, err := s.q.CountInReview(ctx)
	return list(rows, func(r postgres.CountInReviewRow) dbgen.CountInReviewRow { return dbgen.CountInReviewRow(r) }, s.classify(err))
}

func (s *Queries) CountLostAttempts(ctx context.Context) ([]dbgen.CountLostAttemptsRow, error) {
	rows, err := s.q.CountLostAttempts(ctx)
	return list(rows, func(r postgres.CountLostAttemptsRow) dbgen.CountLostAttemptsRow { return dbgen.CountLostAttemptsRow(r) }, s.classify(err))
}

func (s *Queries) CountOpenEvents(ctx context.Context, now int64) ([]dbgen.CountOpenEventsRow, error) {
	rows, err := s.q.CountOpenEvents(ctx, now)
	return list(rows, func(r postgres.CountOpenEventsRow) dbgen.CountOpenEventsRow { return dbgen.CountOpenEventsRow(r) }, s.classify(err))
}

func (s *Queries) ListNewest(ctx context.Context, arg dbgen.ListNewestParams) ([]dbgen.ListNewestRow, error) {
	rows, err := s.q.ListNewest(ctx, postgres.ListNewestParams(arg))
	return list(rows, func(r postgres.ListNewestRow) dbgen.ListNewestRow { return dbgen.ListNewestRow(r) }, s.classify(err))
}

func (s *Queries) ListOldest(ctx context.Context, arg dbgen.ListOldestParams) ([]dbgen.ListOldestRow, error) {
	rows, err := s.q.ListOldest(ctx, postgres.ListOldestParams(arg))
	return list(rows, func(r postgres.ListOldestRow) dbgen.ListOldestRow { return dbgen.ListOldestRow(r) }, s.classify(err))
}

func (s *Queries) InsertResolution(ctx context.Context, arg dbgen.InsertResolutionParams) error {
	return s.classify(s.q.InsertResolution(ctx, postgres.InsertResolutionParams(arg)))
}

func (s *Queries) ListInReview(ctx context.Context, arg dbgen.ListInReviewParams) ([]dbgen.Operation, error) {
	rows, err := s.q.ListInReview(ctx, postgres.ListInReviewParams(arg))
	return list(rows, func(r postgres.Operation) dbgen.Operation { return dbgen.Operation(r) }, s.classify(err))
}

func (s *Queries) ListPausedTools(ctx context.Context) ([]dbgen.PausedTool, error) {
	rows, err := s.q.ListPausedTools(ctx)
	return list(rows, func(r postgres.PausedTool) dbgen.PausedTool { return dbgen.PausedTool(r) }, s.classify(err))
}

func (s *Queries) ListResolutions(ctx context.Context, operationPK int64) ([]dbgen.Resolution, error) {
	rows, err := s.q.ListResolutions(ctx, operationPK)
	return list(rows, func(r postgres.Resolution) dbgen.Resolution { return dbgen.Resolution(r) }, s.classify(err))
}

func (s *Queries) AddPauses(ctx context.Context, added int64) (int64, error) {
	n, err := s.q.AddPauses(ctx, added)
	return n, s.classify(err)
}

func (s *Queries) CountPauses(ctx context.Context) (dbgen.CountPausesRow, error) {
	row, err := s.q.CountPauses(ctx)
	return dbgen.CountPausesRow(row), s.classify(err)
}

func (s *Queries) GetPausedTool(ctx context.Context, toolName string) (dbgen.PausedTool, error) {
	row, err := s.q.GetPausedTool(ctx, toolName)
	return dbgen.PausedTool(row), s.classify(err)
}

func (s *Queries) InsertPastPause(ctx context.Context, arg dbgen.InsertPastPauseParams) error {
	return s.classify(s.q.InsertPastPause(ctx, postgres.InsertPastPauseParams(arg)))
}

func (s *Queries) IsPaused(ctx context.Context, toolName string) (int64, error) {
	n, err := s.q.IsPaused(ctx, toolName)
	return n, s.classify(err)
}

func (s *Queries) LastPastPause(ctx context.Context, toolName string) (int64, error) {
	seq, err := s.q.LastPastPause(ctx, toolName)
	return seq, s.classify(err)
}

func (s *Queries) ListPastPauses(ctx context.Context, arg dbgen.ListPastPausesParams) ([]dbgen.PastPause, error) {
	rows, err := s.q.ListPastPauses(ctx, postgres.ListPastPausesParams(arg))
	return list(rows, func(r postgres.PastPause) dbgen.PastPause { return dbgen.PastPause(r) }, s.classify(err))
}

func (s *Queries) PauseTool(ctx context.Context, arg dbgen.PauseToolParams) (int64, error) {
	v, err := s.q.PauseTool(ctx, postgres.PauseToolParams(arg))
	return v, s.classify(err)
}

func (s *Queries) ResumeTool(ctx context.Context, arg dbgen.ResumeToolParams) (int64, error) {
	n, err := s.q.ResumeTool(ctx, postgres.ResumeToolParams(arg))
	return n, s.classify(err)
}

func (s *Queries) AuditEndings(ctx context.Context, arg dbgen.AuditEndingsParams) ([]dbgen.AuditEndingsRow, error) {
	rows, err := s.q.AuditEndings(ctx, postgres.AuditEndingsParams(arg))
	return list(rows, func(r postgres.AuditEndingsRow) dbgen.AuditEndingsRow {
		return dbgen.AuditEndingsRow{Ending: dbgen.Ending(r.Ending), Operations: r.Operations}
	}, s.classify(err))
}

func (s *Queries) CopyEnding(ctx context.Context, arg dbgen.CopyEndingParams) error {
	return s.classify(s.q.CopyEnding(ctx, postgres.CopyEndingParams(arg)))
}

func (s *Queries) EndedByEnding(ctx context.Context, arg dbgen.EndedByEndingParams) ([]dbgen.EndedByEndingRow, error) {
	rows, err := s.q.EndedByEnding(ctx, postgres.EndedByEndingParams(arg))
	return list(rows, func(r postgres.EndedByEndingRow) dbgen.EndedByEndingRow { return dbgen.EndedByEndingRow(r) }, s.classify(err))
}

func (s *Queries) EndedByReceipt(ctx context.Context, arg dbgen.EndedByReceiptParams) ([]dbgen.EndedByReceiptRow, error) {
	rows, err := s.q.EndedByReceipt(ctx, postgres.EndedByReceiptParams(arg))
	return list(rows, func(r postgres.EndedByReceiptRow) dbgen.EndedByReceiptRow { return dbgen.EndedByReceiptRow(r) }, s.classify(err))
}

func (s *Queries) EndedByTombstone(ctx context.Context, arg dbgen.EndedByTombstoneParams) ([]dbgen.EndedByTombstoneRow, error) {
	rows, err := s.q.EndedByTombstone(ctx, postgres.EndedByTombstoneParams(arg))
	return list(rows, func(r postgres.EndedByTombstoneRow) dbgen.EndedByTombstoneRow { return dbgen.EndedByTombstoneRow(r) }, s.classify(err))
}

func (s *Queries) InsertEnding(ctx context.Context, arg dbgen.InsertEndingParams) error {
	return s.classify(s.q.InsertEnding(ctx, postgres.InsertEndingParams(arg)))
}

func (s *Queries) ListEndings(ctx context.Context, arg dbgen.ListEndingsParams) ([]dbgen.Ending, error) {
	rows, err := s.q.ListEndings(ctx, postgres.ListEndingsParams(arg))
	return list(rows, func(r postgres.Ending) dbgen.Ending { return dbgen.Ending(r) }, s.classify(err))
}

func (s *Queries) NewestReceipt(ctx context.Context) (int64, error) {
	pk, err := s.q.NewestReceipt(ctx)
	return pk, s.classify(err)
}
