package contract

import (
	"strings"
	"testing"
)

func TestObservedAt(t *testing.T) {
	for s, want := range map[string]bool{
		"2026-07-19T00:00:00Z": true, "0001-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true, "2024-02-29T12:00:00Z": true,
		"2000-02-29T00:00:00Z": true, "1900-02-29T00:00:00Z": false, "2026-02-29T00:00:00Z": false, "2026-02-30T00:00:00Z": false,
		"0000-01-01T00:00:00Z": false, "2026-13-01T00:00:00Z": false, "2026-00-01T00:00:00Z": false, "2026-01-00T00:00:00Z": false,
		"2026-01-01T24:00:00Z": false, "2026-01-01T00:60:00Z": false, "2026-01-01T00:00:60Z": false, "2016-12-31T23:59:60Z": false,
		"2026-01-01T00:00:00z": false, "2026-01-01t00:00:00Z": false, "2026-01-01 00:00:00Z": false, "2026-01-01T00:00:00": false,
		"2026-01-01T00:00:00+00:00": false, "2026-01-01T00:00:00.0Z": false, "2026-01-01T1:00:00.5Z": false, "2026-01-01T1:00:00Z": false,
		"2026-1-01T00:00:00ZZ": false, " 2026-01-01T00:00:0Z": false, "2026-01-01T00:00:0,Z": false, "+026-01-01T00:00:00Z": false,
		"２026-01-01T00:00:0Z": false, "2026-01-01T00:00:00Z\n": false, "": false,
	} {
		if got := ValidObservedAt(s); got != want {
			t.Errorf("%q: got %t", s, got)
		}
	}
}

func TestStatusRef(t *testing.T) {
	digits := strings.Repeat("0a", 16)
	for ref, want := range map[string]bool{
		"status_" + digits: true, "status_" + digits[1:]: false, "status_" + digits + "0": false, "Status_" + digits: false,
		"status_" + strings.ToUpper(digits): false, "status_" + digits[:31] + "g": false, "": false,
	} {
		if got := ValidStatusRef(ref); got != want {
			t.Errorf("%q: got %t", ref, got)
		}
	}
}
