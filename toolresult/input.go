package toolresult

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// MaxTime is the last portable instant in Unix seconds, 9999-12-31T23:59:59Z.
const MaxTime int64 = 253_402_300_799

const (
	maxIdentifier = 255 // code points
	maxRoles      = 32
)

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

// CheckIdentifier checks the rule of every identifier in the contract: valid
// UTF-8, not blank, at most 255 code points.
func CheckIdentifier(field, value string) error { return CheckText(field, value, maxIdentifier) }

// CheckWorkerID checks a worker's name: like an identifier, but at most 128
// code points.
func CheckWorkerID(value string) error { return CheckText("worker_id", value, 128) }

// CheckText checks a text that is not blank and has at most limit code points.
func CheckText(field, value string, limit int) error {
	switch {
	case !utf8.ValidString(value):
		return &InputError{field, "must be valid UTF-8"}
	case schema.IsBlank(value):
		return &InputError{field, "must not be blank"}
	case len(value) > limit && utf8.RuneCountInString(value) > limit:
		return &InputError{field, fmt.Sprintf("must have at most %d code points", limit)}
	}
	return nil
}

// CheckTime checks that t is a portable Unix time in whole seconds.
func CheckTime(field string, t int64) error {
	if t < 0 || t > MaxTime {
		return &InputError{field, "must be a UTC datetime between 1970-01-01 and 9999-12-31 in Unix seconds"}
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
	if err := CheckIdentifier("principal.tenant_id", p.TenantID); err != nil {
		return err
	}
	if err := CheckIdentifier("principal.subject_id", p.SubjectID); err != nil {
		return err
	}
	if len(p.Roles) > maxRoles {
		return &InputError{"principal.roles", fmt.Sprintf("must have at most %d entries", maxRoles)}
	}
	for i, role := range p.Roles {
		if err := CheckIdentifier(fmt.Sprintf("principal.roles[%d]", i), role); err != nil {
			return err
		}
	}
	return CheckRoleOrder(p.Roles)
}

// CheckRoleOrder checks that roles are sorted by code point and unique.
func CheckRoleOrder(roles []string) error {
	if !slices.IsSorted(roles) || len(slices.Compact(slices.Clone(roles))) != len(roles) {
		return &InputError{"principal.roles", "must be sorted and unique"}
	}
	return nil
}

// HasRole reports whether p carries the role.
func (p Principal) HasRole(role string) bool { return slices.Contains(p.Roles, role) }
