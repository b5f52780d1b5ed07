// Package bridge gives the packages that open a database what package toolruntime shows
// to nobody else: the making of a store, and the ledger of one. The type of a store is
// toolruntime's, which this package cannot import; toolruntime sets both functions when
// it is initialised, before whatever imports it.
package bridge

import (
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/ledger"
)

var (
	// NewStore makes a *toolruntime.Store on an engine, which it closes.
	NewStore func(engine.Engine) any
	// Ledger is the ledger of a *toolruntime.Store.
	Ledger func(store any) *ledger.Ledger
)
