package toolresult

import (
	"errors"
	"fmt"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/contract"
)

const maxRoles = 32

// ErrInvalidInput matches every [*InputError].
var ErrInvalidInput = errors.New("invalid input")

// An InputError reports a value from the trusted host that breaks a limit of
// the contract. It is a bug of the host: nothing was stored and nothing ran.
// It names the field and the rule, never the value.
type InputError struct {
	Field string // for example "call_id" or "principal.roles[2]"
	Rule  string // for example "must not be blank"
}

func (e *InputError) Error() string { return e.Field + " " + e.Rule }

// Is reports that every InputError is [ErrInvalidInput].
func (e *InputError) Is(target error) bool { return target == ErrInvalidInput }

func checkIdentifier(field, value string) error {
	if rule := contract.Identifier(value); rule != "" {
		return &InputError{field, rule}
	}
	return nil
}

// A Principal is on whose behalf a call is made. The roles are what the host
// presents; the runtime never trusts them for a later step.
type Principal struct {
	TenantID  string   `json:"tenant_id"`
	SubjectID string   `json:"subject_id"`
	Roles     []string `json:"roles"` // sorted, unique
}

// Check reports the first limit that p breaks as an [*InputError].
func (p Principal) Check() error {
	if err := checkIdentifier("principal.tenant_id", p.TenantID); err != nil {
		return err
	}
	if err := checkIdentifier("principal.subject_id", p.SubjectID); err != nil {
		return err
	}
	if len(p.Roles) > maxRoles {
		return &InputError{"principal.roles", fmt.Sprintf("must have at most %d entries", maxRoles)}
	}
	for i, role := range p.Roles {
		if err := checkIdentifier(fmt.Sprintf("principal.roles[%d]", i), role); err != nil {
			return err
		}
	}
	if !contract.Ordered(p.Roles) {
		return &InputError{"principal.roles", "must be sorted and unique"}
	}
	return nil
}

// HasRole reports whether p carries the role.
func (p Principal) HasRole(role string) bool { return slices.Contains(p.Roles, role) }
