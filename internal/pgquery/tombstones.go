package pgquery

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/dbgen/postgres"
)

func (s *Queries) DeleteAttempts(ctx context.Context, operationPK int64) (int64, error) {
	v, err := s.q.DeleteAttempts(ctx, operationPK)
	return v, s.classify(err)
}

func (s *Queries) DeleteCallBinding(ctx context.Context, arg dbgen.DeleteCallBindingParams) (int64, error) {
	v, err := s.q.DeleteCallBinding(ctx, postgres.DeleteCallBindingParams(arg))
	return v, s.classify(err)
}

func (s *Queries) DeleteDownstreamReceipt(ctx context.Context, arg dbgen.DeleteDownstreamReceiptParams) (int64, error) {
	v, err := s.q.DeleteDownstreamReceipt(ctx, postgres.DeleteDownstreamReceiptParams(arg))
	return v, s.classify(err)
}

func (s *Queries) DeleteEvent(ctx context.Context, arg dbgen.DeleteEventParams) (int64, error) {
	v, err := s.q.DeleteEvent(ctx, postgres.DeleteEventParams(arg))
	return v, s.classify(err)
}

func (s *Queries) DeleteLocalReceipt(ctx context.Context, operationPK int64) (int64, error) {
	v, err := s.q.DeleteLocalReceipt(ctx, operationPK)
	return v, s.classify(err)
}

func (s *Queries) DeleteOperation(ctx context.Context, arg dbgen.DeleteOperationParams) (int64, error) {
	v, err := s.q.DeleteOperation(ctx, postgres.DeleteOperationParams(arg))
	return v, s.classify(err)
}

func (s *Queries) DeleteRejectedReceipts(ctx context.Context, operationPK int64) (int64, error) {
	v, err := s.q.DeleteRejectedReceipts(ctx, operationPK)
	return v, s.classify(err)
}

func (s *Queries) DeleteResolutions(ctx context.Context, operationPK int64) (int64, error) {
	v, err := s.q.DeleteResolutions(ctx, operationPK)
	return v, s.classify(err)
}

func (s *Queries) GetTombstoneByRef(ctx context.Context, statusRef string) (dbgen.Tombstone, error) {
	row, err := s.q.GetTombstoneByRef(ctx, statusRef)
	return dbgen.Tombstone(row), s.classify(err)
}

func (s *Queries) InsertTombstone(ctx context.Context, arg dbgen.InsertTombstoneParams) (int64, error) {
	v, err := s.q.InsertTombstone(ctx, postgres.InsertTombstoneParams(arg))
	return v, s.classify(err)
}

func (s *Queries) ListAges(ctx context.Context, arg dbgen.ListAgesParams) ([]dbgen.ListAgesRow, error) {
	rows, err := s.q.ListAges(ctx, postgres.ListAgesParams(arg))
	return list(rows, func(r postgres.ListAgesRow) dbgen.ListAgesRow { return dbgen.ListAgesRow(r) }, s.classify(err))
}

func (s *Queries) ListCallBindingAges(ctx context.Context, arg dbgen.ListCallBindingAgesParams) ([]dbgen.ListCallBindingAgesRow, error) {
	rows, err := s.q.ListCallBindingAges(ctx, postgres.ListCallBindingAgesParams(arg))
	return list(rows, func(r postgres.ListCallBindingAgesRow) dbgen.ListCallBindingAgesRow {
		return dbgen.ListCallBindingAgesRow(r)
	}, s.classify(err))
}

func (s *Queries) ListTombstones(ctx context.Context, arg dbgen.ListTombstonesParams) ([]dbgen.Tombstone, error) {
	rows, err := s.q.ListTombstones(ctx, postgres.ListTombstonesParams(arg))
	return list(rows, func(r postgres.Tombstone) dbgen.Tombstone { return dbgen.Tombstone(r) }, s.classify(err))
}

func (s *Queries) NewestOperation(ctx context.Context) (int64, error) {
	v, err := s.q.NewestOperation(ctx)
	return v, s.classify(err)
}

func (s *Queries) AddTombstones(ctx context.Context, added int64) (int64, error) {
	v, err := s.q.AddTombstones(ctx, added)
	return v, s.classify(err)
}

func (s *Queries) CountTombstones(ctx context.Context) (dbgen.CountTombstonesRow, error) {
	row, err := s.q.CountTombstones(ctx)
	return dbgen.CountTombstonesRow(row), s.classify(err)
}

func (s *Queries) InsertTombstoneResolution(ctx context.Context, arg dbgen.InsertTombstoneResolutionParams) error {
	return s.classify(s.q.InsertTombstoneResolution(ctx, postgres.InsertTombstoneResolutionParams(arg)))
}

func (s *Queries) ListTombstoneResolutions(ctx context.Context, arg dbgen.ListTombstoneResolutionsParams) ([]dbgen.TombstoneResolution, error) {
	rows, err := s.q.ListTombstoneResolutions(ctx, postgres.ListTombstoneResolutionsParams(arg))
	return list(rows, func(r postgres.TombstoneResolution) dbgen.TombstoneResolution { return dbgen.TombstoneResolution(r) }, s.classify(err))
}
