package limits

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestTexts: what is broken is named by its field, and the value is not quoted.
func TestTexts(t *testing.T) {
	profiles := toolresult.DefaultProfiles()
	other := profiles[0]
	other.AdapterRevision += "x"
	for name, test := range map[string]struct {
		err   error
		field string // "" where nothing is broken
	}{
		"an identifier":          {Identifier("actor", strings.Repeat("é", 255)), ""},
		"a long one":             {Identifier("actor", strings.Repeat("é", 256)), "actor"},
		"a worker":               {WorkerID(strings.Repeat("é", 128)), ""},
		"a worker's long name":   {WorkerID(strings.Repeat("é", 129)), "worker_id"},
		"a worker without name":  {WorkerID(""), "worker_id"},
		"a worker's blank name":  {WorkerID("\u001c"), "worker_id"},
		"a worker's broken name": {WorkerID("\xff"), "worker_id"},
		"the last instant":       {Time("at", contract.MaxTime), ""},
		"after it":               {Time("at", contract.MaxTime+1), "at"},
		"before the first":       {Time("at", -1), "at"},
		"a profile":              {Profile(profiles[0], profiles), ""},
		"another revision":       {Profile(other, profiles), "provider profile"},
		"no profiles":            {Profile(profiles[0], nil), "provider profile"},
		"no status_ref":          {StatusRef("status_s3cret"), "status_ref"},
	} {
		var broken *toolresult.InputError
		if is := errors.As(test.err, &broken); is != (test.field != "") || is && broken.Field != test.field {
			t.Errorf("%s: %v", name, test.err)
		}
		if test.err != nil && (strings.Contains(test.err.Error(), "é") || strings.Contains(test.err.Error(), "s3cret")) {
			t.Errorf("%s quotes the value: %v", name, test.err)
		}
	}
	if got := contract.FormatTime(contract.MaxTime); got != "9999-12-31T23:59:59Z" {
		t.Errorf("the last instant is %s", got)
	}
}
