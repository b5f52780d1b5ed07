// Package bridge gives the packages that open a database what package toolruntime shows
// to nobody else: the making of a store, and the copying of one. The types are those of
// toolruntime, which this package cannot import; toolruntime sets both functions when it
// is initialised, before whatever imports it.
package bridge

import (
	"context"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

var (
	// NewStore makes a *toolruntime.Store on an engine, which it closes.
	NewStore func(engine.Engine) any
	// Copy copies every row of a *toolruntime.Store into another, which nobody else may
	// use meanwhile, and returns the toolruntime.Counts of the copy.
	Copy func(ctx context.Context, from, to any, progress func(done, total int64)) (any, error)
)
