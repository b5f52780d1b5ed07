package tables

import "github.com/toolruntime/toolruntime-go/internal/dbgen"

// The tables whose rows have a digest.
var (
	CallBindings = describe[dbgen.CallBinding]("call_bindings", nil)

	Operations = describe("operations", map[string]coverage[dbgen.Operation]{
		"operation_pk": never[dbgen.Operation](),
		"effect_kind":  {without: func(o *dbgen.Operation) bool { return o.EffectKind == "" }},
	})

	Outbox = describe("outbox", map[string]coverage[dbgen.Outbox]{
		"next_attempt_at": {without: func(e *dbgen.Outbox) bool { return e.State != "pending" || e.NextAttemptAt == 0 }},
		"lane":            never[dbgen.Outbox](),
		"decisions":       {"decisions", func(e *dbgen.Outbox) bool { return e.Decisions == 0 }},
	})

	Attempts = describe("attempts", map[string]coverage[dbgen.Attempt]{
		"cause": {"cause", func(a *dbgen.Attempt) bool { return a.Cause == "" }},
	})

	DownstreamReceipts = describe("downstream_receipts", map[string]coverage[dbgen.DownstreamReceipt]{
		"downstream_pk": never[dbgen.DownstreamReceipt](),
	})

	LocalReceipts    = describe[dbgen.LocalReceipt]("local_receipts", nil)
	RejectedReceipts = describe[dbgen.RejectedReceipt]("rejected_receipts", nil)
	Resolutions      = describe[dbgen.Resolution]("resolutions", nil)

	Endings = describe("endings", map[string]coverage[dbgen.Ending]{"ending_pk": never[dbgen.Ending]()})

	PausedTools = describe[dbgen.PausedTool]("paused_tools", nil)
	PastPauses  = describe[dbgen.PastPause]("past_pauses", nil)

	Tombstones = describe("tombstones", map[string]coverage[dbgen.Tombstone]{
		"decisions":  {"decisions", func(t *dbgen.Tombstone) bool { return t.Decisions == 0 }},
		"receipt_pk": {"receipt", func(t *dbgen.Tombstone) bool { return t.ReceiptPK == 0 }},
	})

	TombstoneResolutions = describe[dbgen.TombstoneResolution]("tombstone_resolutions", nil)
)
