package toolresult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
)

// The constants of the wire.
const (
	modelResultSchema = "tool-model-result-v2"
	auditSchema       = "tool-audit-v2"
	auditVisibility   = "protected_audit"

	trustData    = "untrusted_data"
	trustControl = "trusted_control"

	controlSource   = "offline-dispatcher"
	controlProducer = "offline-dispatcher-v2"
)

// A Status says in one word how a call ended.
type Status string

// The statuses.
const (
	StatusSucceeded Status = "succeeded" // the effect is committed, or the read answered
	StatusFailed    Status = "failed"    // nothing was done
	StatusUnknown   Status = "unknown"   // it may have happened, or may still happen
)

// A Delivery says where an answer comes from.
type Delivery string

// The deliveries.
const (
	Fresh             Delivery = "fresh"              // this call has found it out
	LocalReplay       Delivery = "local_replay"       // from the ledger, as another call has found it out
	ReceiptReconciled Delivery = "receipt_reconciled" // the answer to a question for the status
)

// A Package is what a call returns.
type Package struct {
	ModelResult    ModelResult    `json:"model_result"`
	ProtectedAudit ProtectedAudit `json:"protected_audit"`
	// Ended is when the operation ended that a package is the answer of, which for
	// a replay was before the call. It is for the host alone and in neither
	// projection; zero where no operation has ended.
	Ended Ending `json:"-"`
	// Problems say what to change in a call that ended with [InvalidArguments]: at
	// most [MaxProblems] places, as JSON pointers into the arguments ("/" is all of
	// them, "*" a name that the model chose) or in words ("call id"), with the rule
	// of each. They hold no value, and no name but those that the tool declares. They
	// are in neither projection; an adapter puts them beside the model result where
	// the provider's form has room.
	Problems []Problem `json:"-"`
}

// An Ending is when an operation ended, and in which attempt.
type Ending struct {
	At      time.Time // UTC, whole seconds
	Attempt int64     // from 1; 0 for one that ended without an attempt
}

// A ModelResult is the projection that goes to the model.
type ModelResult struct {
	SchemaVersion string          `json:"schema_version"`
	Status        Status          `json:"status"`
	Data          json.RawMessage `json:"data"` // canonical object, or null
	Error         *ErrorInfo      `json:"error"`
	Execution     Execution       `json:"execution"`
	Provenance    Provenance      `json:"provenance"`
}

// Execution says what happened, and whether the data is whole.
type Execution struct {
	Outcome   ExecutionOutcome `json:"outcome"`
	Delivery  Delivery         `json:"delivery"`
	Complete  bool             `json:"complete"`
	Truncated bool             `json:"truncated"`
}

// Provenance says who made the data, and how far to trust it.
type Provenance struct {
	SourceLabel      string  `json:"source_label"`
	ProducerRevision string  `json:"producer_revision"`
	ResourceRevision *string `json:"resource_revision"`
	ObservedAt       string  `json:"observed_at"` // UTC, whole seconds: 2006-01-02T15:04:05Z
	Trust            string  `json:"trust"`
}

// A ProtectedAudit is the projection that never goes to the model.
type ProtectedAudit struct {
	SchemaVersion   string          `json:"schema_version"`
	Visibility      string          `json:"visibility"`
	OperationID     string          `json:"operation_id"`
	PrincipalRef    string          `json:"principal_ref"`
	ProviderContext ProviderContext `json:"provider_context"`
	ToolContract    Contract        `json:"tool_contract"`
	Binding         Binding         `json:"binding"`
	Downstream      Downstream      `json:"downstream"`
	Redactions      []string        `json:"redactions"`
}

// A ProviderContext names the provider's turn.
type ProviderContext struct {
	Provider        string `json:"provider"`
	APIFamily       string `json:"api_family"`
	ResponseID      string `json:"response_id"`
	CallID          string `json:"call_id"`
	AdapterRevision string `json:"adapter_revision"`
}

// A Binding holds the digests that tie a package to its call.
type Binding struct {
	RequestSHA256     string `json:"request_sha256"`
	ResultSHA256      string `json:"result_sha256"`
	CallBindingSHA256 string `json:"call_binding_sha256"`
}

// Downstream is the evidence of the effect.
type Downstream struct {
	RequestID *string `json:"request_id"`
	ReceiptID *string `json:"receipt_id"`
	StatusRef *string `json:"status_ref"`
}

// Evidence is what a success is made of. A write has all of it; a read has
// neither receipt, request nor status_ref.
type Evidence struct {
	ReceiptID        string
	RequestID        string
	StatusRef        string
	Data             string // canonical JSON object
	ProducerRevision string
	ResourceRevision string // "" is null
	ObservedAt       string
}

// Code returns how the call ended: [OK] or an error code.
func (p *Package) Code() Code {
	if p.ModelResult.Error == nil {
		return OK
	}
	return p.ModelResult.Error.Code
}

// Delivery returns where the answer comes from.
func (p *Package) Delivery() Delivery { return p.ModelResult.Execution.Delivery }

// StatusRef returns the public name of the operation, or "".
func (p *Package) StatusRef() string { return deref(p.ProtectedAudit.Downstream.StatusRef) }

// Decode reads the data of a success into v, a pointer. Names must be exactly those
// of v's fields, letter case included; a field that v does not have is an error, and
// so is one that comes twice. The error quotes nothing of the data.
func (p *Package) Decode(v any) error {
	if p.Code() != OK {
		return fmt.Errorf("toolresult: a package with code %s has no data", p.Code())
	}
	if err := jsonv2.Unmarshal(p.ModelResult.Data, v, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("toolresult: the data does not fit a %T", v)
	}
	return nil
}

// Success is the package of a committed effect, or of a read. The package owns
// its memory: changing it changes no other answer.
func (b *Bound) Success(source string, e Evidence, d Delivery) *Package {
	return b.seal(ModelResult{
		SchemaVersion: modelResultSchema,
		Status:        StatusSucceeded,
		Data:          json.RawMessage(e.Data),
		Execution:     Execution{Outcome: OutcomeCommitted, Delivery: d, Complete: true},
		Provenance: Provenance{SourceLabel: source, ProducerRevision: e.ProducerRevision,
			ResourceRevision: optional(e.ResourceRevision), ObservedAt: e.ObservedAt, Trust: trustData},
	}, Downstream{RequestID: optional(e.RequestID), ReceiptID: optional(e.ReceiptID), StatusRef: optional(e.StatusRef)})
}

// Failure is the package of a call that ended with an error code, at time now in
// whole seconds. statusRef is empty where the code names no operation.
func (b *Bound) Failure(code Code, statusRef string, now time.Time) *Package {
	return b.failure(code, statusRef, Fresh, now)
}

// Ended is the package of an operation that ended with an error code at a time in
// whole seconds, so that every repetition has the same result digest. d says whether
// this call has seen it end or is told again.
func (b *Bound) Ended(code Code, statusRef string, d Delivery, at time.Time) *Package {
	return b.failure(code, statusRef, d, at)
}

func (b *Bound) failure(code Code, statusRef string, d Delivery, at time.Time) *Package {
	entry := byCode[code]
	return b.seal(ModelResult{
		SchemaVersion: modelResultSchema,
		Status:        entry.status(),
		Error:         entry.info(),
		Execution:     Execution{Outcome: entry.Outcome, Delivery: d},
		Provenance: Provenance{SourceLabel: controlSource, ProducerRevision: controlProducer,
			ObservedAt: contract.FormatTime(at.Unix()), Trust: trustControl},
	}, Downstream{StatusRef: optional(statusRef)})
}

func (b *Bound) seal(m ModelResult, d Downstream) *Package {
	c := b.call
	result := m.SHA256()
	return &Package{ModelResult: m, ProtectedAudit: ProtectedAudit{
		SchemaVersion: auditSchema,
		Visibility:    auditVisibility,
		OperationID:   c.OperationID,
		PrincipalRef:  b.PrincipalRef(),
		ProviderContext: ProviderContext{Provider: c.Provider, APIFamily: c.APIFamily,
			ResponseID: c.ResponseID, CallID: c.CallID, AdapterRevision: c.AdapterRevision},
		ToolContract: b.contract,
		Binding: Binding{RequestSHA256: b.request, ResultSHA256: result,
			CallBindingSHA256: b.CallBindingSHA256(result, d)},
		Downstream: d,
		Redactions: []string{},
	}}
}

// SHA256 is the digest of the whole model result. Data must be canonical, as it
// is in every package that this library made.
func (m *ModelResult) SHA256() string {
	e := contract.NewEncoder()
	m.encode(e)
	return e.Sum()
}

// Text is the canonical JSON of the model result: the only thing that a
// provider ever gets.
func (m *ModelResult) Text() string {
	e := contract.NewEncoder()
	m.encode(e)
	return e.Text()
}

func (m *ModelResult) encode(e *contract.Encoder) {
	e.Open()
	if m.Data == nil {
		e.Raw("data", "null")
	} else {
		e.Key("data")
		e.Append(m.Data)
	}
	if x := m.Error; x == nil {
		e.Raw("error", "null")
	} else {
		e.Object("error")
		e.Str("category", string(x.Category))
		e.Str("code", string(x.Code))
		e.Str("recovery", string(x.Recovery))
		if x.RetryAfterMS == nil {
			e.Raw("retry_after_ms", "null")
		} else {
			e.Raw("retry_after_ms", fmt.Sprint(*x.RetryAfterMS))
		}
		e.Str("safe_message", x.SafeMessage)
		e.Close()
	}
	e.Object("execution")
	e.Boolean("complete", m.Execution.Complete)
	e.Str("delivery", string(m.Execution.Delivery))
	e.Str("outcome", string(m.Execution.Outcome))
	e.Boolean("truncated", m.Execution.Truncated)
	e.Close()
	e.Object("provenance")
	e.Str("observed_at", m.Provenance.ObservedAt)
	e.Str("producer_revision", m.Provenance.ProducerRevision)
	e.Ptr("resource_revision", m.Provenance.ResourceRevision)
	e.Str("source_label", m.Provenance.SourceLabel)
	e.Str("trust", m.Provenance.Trust)
	e.Close()
	e.Str("schema_version", m.SchemaVersion)
	e.Str("status", string(m.Status))
	e.Close()
}

// Clone returns a copy that shares no memory with p.
func (p *Package) Clone() *Package {
	q := *p
	q.Problems = slices.Clone(p.Problems)
	q.ModelResult.Data = bytes.Clone(p.ModelResult.Data)
	if p.ModelResult.Error != nil {
		info := *p.ModelResult.Error
		info.RetryAfterMS = clonePtr(info.RetryAfterMS)
		q.ModelResult.Error = &info
	}
	q.ModelResult.Provenance.ResourceRevision = clonePtr(p.ModelResult.Provenance.ResourceRevision)
	d := p.ProtectedAudit.Downstream
	q.ProtectedAudit.Downstream = Downstream{clonePtr(d.RequestID), clonePtr(d.ReceiptID), clonePtr(d.StatusRef)}
	q.ProtectedAudit.Redactions = slices.Clone(p.ProtectedAudit.Redactions)
	return &q
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// tree is a as the strict reader sees it. The encoder must not escape HTML: that
// would make six bytes of one, and a package that is in the limits too large.
func (a *ProtectedAudit) tree() (any, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		return nil, err
	}
	return canonjson.Parse(text.Bytes())
}
