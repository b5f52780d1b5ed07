package limits

import (
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The contract's own limits, as errors that name the field.

func broken(field, rule string) error {
	if rule == "" {
		return nil
	}
	return &toolresult.InputError{Field: field, Rule: rule}
}

// Identifier checks a name or an id.
func Identifier(field, value string) error { return broken(field, contract.Identifier(value)) }

// WorkerID checks a worker's name.
func WorkerID(value string) error { return broken("worker_id", contract.WorkerID(value)) }

// Text checks a text that is not blank and has at most so many code points.
func Text(field, value string, most int) error { return broken(field, contract.Text(value, most)) }

// Time checks that t is a portable Unix time.
func Time(field string, t int64) error { return broken(field, contract.Time(t)) }

// StatusRef checks the form of a status_ref.
func StatusRef(ref string) error {
	if contract.ValidStatusRef(ref) {
		return nil
	}
	return broken("status_ref", "must be status_ and 32 lower-case hexadecimal digits")
}

// Profile checks that a provider profile is one of those registered.
func Profile(p toolresult.Profile, registered []toolresult.Profile) error {
	if slices.Contains(registered, p) {
		return nil
	}
	return broken("provider profile", "is not registered, or its adapter_revision is not the registered one")
}
