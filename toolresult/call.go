package toolresult

import (
	"bytes"
	"encoding/json"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/internal/contract"
)

// A Proposal is what the model may say, and nothing else comes from the model.
type Proposal struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a JSON object; empty means {}
}

// An ExecutionContext is what the trusted host adds to a proposal.
type ExecutionContext struct {
	Provider    string `json:"provider"`
	APIFamily   string `json:"api_family"`
	ResponseID  string `json:"response_id"`
	CallID      string `json:"call_id"`
	OperationID string `json:"operation_id"`
	// IdempotencyKey is the host's key of the intent. Empty means absent, which
	// a write tool refuses with IDEMPOTENCY_KEY_REQUIRED.
	IdempotencyKey  string `json:"idempotency_key"`
	AdapterRevision string `json:"adapter_revision"`
}

// A Call is a proposal in its execution context.
type Call struct {
	Proposal
	ExecutionContext
	// Fault says why the call can be answered and not carried out, or is nil. Its
	// path can hold a name that the model chose. See [Call.Refuse].
	Fault *Problem `json:"-"`
}

// NewCall joins a proposal and its context, and copies the arguments: a later
// change of the proposal's bytes cannot reach the call.
func NewCall(p Proposal, c ExecutionContext) Call {
	p.Arguments = bytes.Clone(p.Arguments)
	return Call{Proposal: p, ExecutionContext: c}
}

// Check reports the first limit that c breaks as an [*InputError]. It does not
// look at the arguments, which are the model's and answered with a package.
func (c Call) Check() error {
	for _, f := range [...]struct{ name, value string }{
		{"call_id", c.CallID}, {"operation_id", c.OperationID}, {"name", c.Name},
		{"provider", c.Provider}, {"api_family", c.APIFamily},
		{"response_id", c.ResponseID}, {"adapter_revision", c.AdapterRevision},
	} {
		if err := checkIdentifier(f.name, f.value); err != nil {
			return err
		}
	}
	if c.IdempotencyKey == "" {
		return nil
	}
	return checkIdentifier("idempotency_key", c.IdempotencyKey)
}

// StatusQuery is the call identity under which the status of c's operation is
// asked for: derived ids, every other field c's own.
func (c Call) StatusQuery(statusRef string) Call {
	e := contract.NewEncoder()
	e.Open()
	e.Str("api_family", c.APIFamily)
	e.Str("call_id", c.CallID)
	e.Str("provider", c.Provider)
	e.Str("response_id", c.ResponseID)
	e.Str("status_ref", statusRef)
	e.Close()
	id := e.Sum()[:24]
	c.CallID = "status-call-" + id
	c.ResponseID = "status-response-" + id
	c.Arguments = bytes.Clone(c.Arguments)
	return c
}

// A Profile is a provider API for which this host has an adapter, and the one
// adapter revision that it accepts.
type Profile struct {
	Provider, APIFamily, AdapterRevision string
}

// The provider profiles of the contract.
var (
	OpenAIResponses    = Profile{"openai", "responses", "openai-responses-v1"}
	AnthropicMessages  = Profile{"anthropic", "messages", "anthropic-messages-v1"}
	GeminiInteractions = Profile{"google", "interactions", "gemini-interactions-v1"}
)

// DefaultProfiles returns the three profiles of the contract.
func DefaultProfiles() []Profile {
	return []Profile{OpenAIResponses, AnthropicMessages, GeminiInteractions}
}

// Profile returns the provider profile that c claims.
func (c ExecutionContext) Profile() Profile {
	return Profile{c.Provider, c.APIFamily, c.AdapterRevision}
}

// Context returns the execution context of a call that came through p. The
// operation id and the idempotency key are the host's to add.
func (p Profile) Context(responseID, callID string) ExecutionContext {
	return ExecutionContext{Provider: p.Provider, APIFamily: p.APIFamily, AdapterRevision: p.AdapterRevision,
		ResponseID: responseID, CallID: callID}
}

// canonicalArguments reads the arguments strictly and returns their tree and
// their canonical text. They stand at depth 1 of everything that is hashed.
func canonicalArguments(raw json.RawMessage) (any, []byte, error) {
	if len(raw) == 0 {
		return map[string]any{}, []byte("{}"), nil
	}
	tree, err := canonjson.Parse(raw)
	if err != nil {
		return nil, nil, &argumentsError{err}
	}
	text, err := canonjson.Append(make([]byte, 0, len(raw)), tree, 1)
	if err != nil {
		return nil, nil, &argumentsError{err}
	}
	if len(text) > canonjson.MaxBytes {
		return nil, nil, &InputError{"arguments", "must have at most 65536 bytes as canonical JSON"}
	}
	return tree, text, nil
}

// An argumentsError says that no digest of the arguments exists.
type argumentsError struct{ cause error }

func (e *argumentsError) Error() string        { return "arguments: " + e.cause.Error() }
func (e *argumentsError) Unwrap() error        { return e.cause }
func (e *argumentsError) Is(target error) bool { return target == ErrInvalidInput }
