// Package contract is what the packages of this module share of the contract and a user
// of the library has no need of: its limits, and its digests over stored values.
package contract

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/schema"
)

// MaxTime is the last portable instant in Unix seconds, 9999-12-31T23:59:59Z.
const MaxTime int64 = 253_402_300_799

// How long texts may be, in code points.
const (
	MaxIdentifier = 255
	maxWorkerID   = 128
)

// Identifier is the rule that a value breaks of those for every identifier, or "": valid
// UTF-8, not blank, at most 255 code points.
func Identifier(value string) string { return Text(value, MaxIdentifier) }

// WorkerID is the rule that a worker's name breaks, or "": it is like an identifier, but
// of at most 128 code points.
func WorkerID(value string) string { return Text(value, maxWorkerID) }

// Text is the rule that a text breaks, or "": it is not blank, and has at most limit code
// points.
func Text(value string, limit int) string {
	switch {
	case !utf8.ValidString(value):
		return "must be valid UTF-8"
	case schema.IsBlank(value):
		return "must not be blank"
	case len(value) > limit && utf8.RuneCountInString(value) > limit:
		return fmt.Sprintf("must have at most %d code points", limit)
	}
	return ""
}

// Time is the rule that a time in Unix seconds breaks, or "": it is portable.
func Time(t int64) string {
	if t < 0 || t > MaxTime {
		return "must be a UTC datetime between 1970-01-01 and 9999-12-31 in Unix seconds"
	}
	return ""
}

// Ordered reports whether roles are sorted by code point and unique.
func Ordered(roles []string) bool {
	return slices.IsSorted(roles) && len(slices.Compact(slices.Clone(roles))) == len(roles)
}

const observedLayout = "2006-01-02T15:04:05Z"

// At is a portable Unix time as Go has it; 0 is none.
func At(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// FormatTime writes a portable Unix time as observed_at does.
func FormatTime(unix int64) string { return time.Unix(unix, 0).UTC().Format(observedLayout) }

// ValidObservedAt reports whether s is a real UTC instant of the years 0001 to
// 9999 in the one form that the contract allows.
func ValidObservedAt(s string) bool {
	if len(s) != len(observedLayout) || s[10] != 'T' || s[19] != 'Z' || s[:4] == "0000" {
		return false
	}
	_, err := time.Parse(observedLayout, s)
	return err == nil
}

// ValidStatusRef reports whether s has the form of a status_ref: "status_" and
// 32 lower-case hexadecimal digits.
func ValidStatusRef(s string) bool { return len(s) == 39 && s[:7] == "status_" && isHex(s[7:]) }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
