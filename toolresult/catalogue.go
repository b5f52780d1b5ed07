package toolresult

import "slices"

// A Code says how a call ended. [OK] is no error code; every other one is in
// the [Catalogue].
type Code string

// OK is the code of a success.
const OK Code = "OK"

// The error codes of the contract.
const (
	UnknownTool             Code = "UNKNOWN_TOOL"
	InvalidArguments        Code = "INVALID_ARGUMENTS"
	OutputContractViolation Code = "OUTPUT_CONTRACT_VIOLATION"
	NotFound                Code = "NOT_FOUND"
	BusinessRuleViolation   Code = "BUSINESS_RULE_VIOLATION"
	CallIDConflict          Code = "CALL_ID_CONFLICT"
	IdempotencyKeyRequired  Code = "IDEMPOTENCY_KEY_REQUIRED"
	IdempotencyConflict     Code = "IDEMPOTENCY_CONFLICT"
	IdempotencyKeyExpired   Code = "IDEMPOTENCY_KEY_EXPIRED"
	ApprovalRequired        Code = "APPROVAL_REQUIRED"
	ApprovalInvalid         Code = "APPROVAL_INVALID"
	TimeoutBeforeExecute    Code = "TIMEOUT_BEFORE_EXECUTE"
	Accepted                Code = "ACCEPTED"
	Cancelled               Code = "CANCELLED"
	ToolPaused              Code = "TOOL_PAUSED"
	OutcomeUnknown          Code = "OUTCOME_UNKNOWN"
	StatusConflict          Code = "STATUS_CONFLICT"
	RateLimit               Code = "RATE_LIMIT"
	ToolError               Code = "TOOL_ERROR"
)

// An ExecutionOutcome says what became of the effect.
type ExecutionOutcome string

// The outcomes of an execution.
const (
	OutcomeNotStarted ExecutionOutcome = "not_started" // it has not begun, and will not because of this call
	OutcomeIsUnknown  ExecutionOutcome = "unknown"     // it may have happened, or may still happen
	OutcomeCommitted  ExecutionOutcome = "committed"   // it has happened, or the read was made
)

// A Category says what stood in the way.
type Category string

// The categories of errors.
const (
	CategoryContract      Category = "contract"      // the call does not fit the tool's contract
	CategoryAuthorization Category = "authorization" // the principal may not
	CategoryBusiness      Category = "business"      // a business rule
	CategoryApproval      Category = "approval"      // a person's approval
	CategoryConflict      Category = "conflict"      // something else has the key, the call identity or the status_ref
	CategoryDependency    Category = "dependency"    // something that the tool needs
	CategoryExecution     Category = "execution"     // the execution itself
)

// A Recovery says what may be done next.
type Recovery string

// The recoveries.
const (
	RecoveryNone            Recovery = "none"             // nothing
	RecoveryCorrectInput    Recovery = "correct_input"    // make another call, with other input
	RecoveryRequestApproval Recovery = "request_approval" // ask a person for an approval
	RecoveryRetryAfter      Recovery = "retry_after"      // repeat the call after retry_after_ms
	RecoveryQueryStatus     Recovery = "query_status"     // ask for the status
	RecoveryHumanReview     Recovery = "human_review"     // let a person see to it
)

// An ErrorInfo is what a model learns of a failure: fixed text that says what
// it may do next, and names no path, id, tenant or argument.
type ErrorInfo struct {
	Code         Code     `json:"code"`
	Category     Category `json:"category"`
	SafeMessage  string   `json:"safe_message"`
	Recovery     Recovery `json:"recovery"`
	RetryAfterMS *int64   `json:"retry_after_ms"` // milliseconds, or null
}

// An Entry is a row of the [Catalogue].
type Entry struct {
	Code         Code
	Category     Category
	Outcome      ExecutionOutcome
	Recovery     Recovery
	RetryAfterMS int64 // 0 is null
	SafeMessage  string
}

var catalogue = []Entry{
	{UnknownTool, CategoryContract, OutcomeNotStarted, RecoveryCorrectInput, 0,
		"This tool is not available. Choose one of the tools that were offered."},
	{InvalidArguments, CategoryContract, OutcomeNotStarted, RecoveryCorrectInput, 0,
		"The arguments do not match the tool's input schema. Correct them and propose the call again."},
	{OutputContractViolation, CategoryExecution, OutcomeIsUnknown, RecoveryHumanReview, 0,
		"The tool answered outside its contract, so the answer is withheld. Do not repeat the call; a person will review it."},
	{NotFound, CategoryAuthorization, OutcomeNotStarted, RecoveryNone, 0,
		"The resource does not exist or is not available. Do not repeat the call."},
	{BusinessRuleViolation, CategoryBusiness, OutcomeNotStarted, RecoveryHumanReview, 0,
		"A business rule does not allow this action now. Do not repeat the call; ask a person to review it."},
	{CallIDConflict, CategoryConflict, OutcomeNotStarted, RecoveryHumanReview, 0,
		"This call identity was already used for something else. Do not repeat the call; a person will review it."},
	{IdempotencyKeyRequired, CategoryContract, OutcomeNotStarted, RecoveryCorrectInput, 0,
		"This action needs an idempotency key from the host. Nothing was done."},
	{IdempotencyConflict, CategoryConflict, OutcomeNotStarted, RecoveryHumanReview, 0,
		"This idempotency key already belongs to a different request. Nothing was done; a person will review it."},
	{IdempotencyKeyExpired, CategoryConflict, OutcomeNotStarted, RecoveryHumanReview, 0,
		"This idempotency key was used for an action that ended long ago, and its record is gone. Nothing was done now; a person must find out whether it shall be done again."},
	{ApprovalRequired, CategoryApproval, OutcomeNotStarted, RecoveryRequestApproval, 0,
		"This action needs a person's approval. Nothing was done; ask for the approval first."},
	{ApprovalInvalid, CategoryApproval, OutcomeNotStarted, RecoveryRequestApproval, 0,
		"The approval does not cover exactly this action. Nothing was done; ask for a new approval."},
	{TimeoutBeforeExecute, CategoryExecution, OutcomeNotStarted, RecoveryRetryAfter, 1000,
		"The time ran out before the action started. Nothing was done; try again after the given time."},
	{Accepted, CategoryExecution, OutcomeIsUnknown, RecoveryQueryStatus, 0,
		"The call was accepted and is not carried out yet. Ask for its status; do not repeat it, and do not say that it was done."},
	{Cancelled, CategoryExecution, OutcomeNotStarted, RecoveryNone, 0,
		"A person cancelled this action before it began. Nothing was done, and nothing will be. Do not repeat the call."},
	{ToolPaused, CategoryDependency, OutcomeNotStarted, RecoveryHumanReview, 0,
		"A person has paused this tool for the time being. Nothing was done; do not repeat the call until a person says that the tool may be used again."},
	{OutcomeUnknown, CategoryExecution, OutcomeIsUnknown, RecoveryQueryStatus, 0,
		"The action may or may not have happened. Do not repeat it; ask for its status."},
	{StatusConflict, CategoryConflict, OutcomeIsUnknown, RecoveryHumanReview, 0,
		"The status query does not belong to this action. Do not repeat it; a person will review it."},
	{RateLimit, CategoryDependency, OutcomeNotStarted, RecoveryRetryAfter, 1000,
		"Too many requests at the moment. Nothing was done; try again after the given time."},
	{ToolError, CategoryExecution, OutcomeNotStarted, RecoveryHumanReview, 0,
		"The tool could not do this. Nothing was changed; a person will review it."},
}

// Catalogue returns every error code with what a model may do after it.
func Catalogue() []Entry { return slices.Clone(catalogue) }

var byCode = func() map[Code]Entry {
	m := make(map[Code]Entry, len(catalogue))
	for _, e := range catalogue {
		m[e.Code] = e
	}
	return m
}()

// Lookup returns the catalogue's entry for an error code.
func Lookup(c Code) (Entry, bool) {
	e, ok := byCode[c]
	return e, ok
}

// info is the entry as a package carries it.
func (e Entry) info() *ErrorInfo {
	info := &ErrorInfo{Code: e.Code, Category: e.Category, SafeMessage: e.SafeMessage, Recovery: e.Recovery}
	if e.RetryAfterMS != 0 {
		ms := e.RetryAfterMS
		info.RetryAfterMS = &ms
	}
	return info
}

// status is the status of a package that ends with the code.
func (e Entry) status() Status {
	if e.Outcome == OutcomeIsUnknown {
		return StatusUnknown
	}
	return StatusFailed
}
