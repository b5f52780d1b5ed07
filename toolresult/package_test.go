package toolresult_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// The table of section 5 of the contract.
const contractTable = `
UNKNOWN_TOOL contract not_started correct_input 0
INVALID_ARGUMENTS contract not_started correct_input 0
OUTPUT_CONTRACT_VIOLATION execution unknown human_review 0
NOT_FOUND authorization not_started none 0
BUSINESS_RULE_VIOLATION business not_started human_review 0
CALL_ID_CONFLICT conflict not_started human_review 0
IDEMPOTENCY_KEY_REQUIRED contract not_started correct_input 0
IDEMPOTENCY_CONFLICT conflict not_started human_review 0
APPROVAL_REQUIRED approval not_started request_approval 0
APPROVAL_INVALID approval not_started request_approval 0
TIMEOUT_BEFORE_EXECUTE execution not_started retry_after 1000
OUTCOME_UNKNOWN execution unknown query_status 0
STATUS_CONFLICT conflict unknown human_review 0
RATE_LIMIT dependency not_started retry_after 1000
TOOL_ERROR execution not_started human_review 0`

func TestCatalogue(t *testing.T) {
	got := map[toolresult.Code]toolresult.Entry{}
	for _, e := range toolresult.Catalogue() {
		if e.SafeMessage == "" || strings.ContainsAny(e.SafeMessage, "/%{}_") {
			t.Errorf("%s: message %q", e.Code, e.SafeMessage)
		}
		if found, ok := toolresult.Lookup(e.Code); !ok || found != e {
			t.Errorf("%s: Lookup: %v, %t", e.Code, found, ok)
		}
		e.SafeMessage = ""
		got[e.Code] = e
	}
	rows := strings.Split(strings.TrimSpace(contractTable), "\n")
	for _, row := range rows {
		f := strings.Fields(row)
		e := toolresult.Entry{Code: toolresult.Code(f[0]), Category: toolresult.Category(f[1]),
			Outcome: toolresult.ExecutionOutcome(f[2]), Recovery: toolresult.Recovery(f[3])}
		if f[4] != "0" {
			e.RetryAfterMS = 1000
		}
		if diff := cmp.Diff(e, got[e.Code]); diff != "" {
			t.Errorf("%s: %s", e.Code, diff)
		}
	}
	if _, ok := toolresult.Lookup(toolresult.OK); ok || len(got) < len(rows) {
		t.Errorf("OK is an error code: %t; %d codes", ok, len(got))
	}
	toolresult.Catalogue()[0].Code = "CHANGED"
	if toolresult.Catalogue()[0].Code == "CHANGED" {
		t.Error("the catalogue can be changed")
	}
}

func TestPackagesShareNoMemory(t *testing.T) {
	for _, s := range subjects(t) {
		before := string(encode(t, s.pkg))
		q := s.pkg.Clone()
		if diff := cmp.Diff(s.pkg, q); diff != "" {
			t.Errorf("%s: the clone differs: %s", s.name, diff)
		}
		if q.ModelResult.Data != nil {
			q.ModelResult.Data[1] = 'X'
		}
		if info := q.ModelResult.Error; info != nil {
			info.Code = "X"
			if info.RetryAfterMS != nil {
				*info.RetryAfterMS = 7
			}
		}
		d := q.ProtectedAudit.Downstream
		for _, p := range []*string{q.ModelResult.Provenance.ResourceRevision, d.RequestID, d.ReceiptID, d.StatusRef} {
			if p != nil {
				*p = "X"
			}
		}
		q.ProtectedAudit.Redactions = append(q.ProtectedAudit.Redactions, "X")
		if after := string(encode(t, s.pkg)); after != before {
			t.Errorf("%s: a change of the clone shows: %s", s.name, after)
		}
	}
	b := bind(t, orderCall(), orderSpec(t).Contract())
	first := b.Failure(toolresult.RateLimit, "", time.Unix(now, 0))
	*first.ModelResult.Error.RetryAfterMS = 0
	if *b.Failure(toolresult.RateLimit, "", time.Unix(now, 0)).ModelResult.Error.RetryAfterMS != 1000 {
		t.Error("a change of one package shows in the next")
	}
	if (&toolresult.Package{}).Clone().ProtectedAudit.Redactions != nil {
		t.Error("the clone of an invalid package is repaired")
	}
}

func TestDecode(t *testing.T) {
	spec := orderSpec(t)
	b := bind(t, orderCall(), spec.Contract())
	var got struct {
		OrderRef string `json:"order_ref"`
		Status   string `json:"status"`
	}
	if err := b.Success(spec.Source(), orderEvidence(), toolresult.Fresh).Decode(&got); err != nil || got.Status != "paid" {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, data := range map[string]string{
		"a name in other letters":      `{"STATUS":"refunded","order_ref":"a","status":"paid"}`,
		"a name that folds to another": "{\"\u017ftatus\":\"refunded\",\"status\":\"paid\"}",
		"a name that comes twice":      `{"status":"paid","status":"refunded"}`,
		"a name that nobody knows":     `{"secret":"refunded","status":"paid"}`,
		"another type":                 `{"status":["refunded"]}`,
	} {
		p := b.Success(spec.Source(), orderEvidence(), toolresult.Fresh)
		p.ModelResult.Data = []byte(data)
		if err := p.Decode(&got); err == nil || strings.Contains(err.Error(), "refunded") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if err := b.Failure(toolresult.NotFound, "", time.Unix(now, 0)).Decode(&got); err == nil || !strings.Contains(err.Error(), "NOT_FOUND") {
		t.Errorf("a failure was decoded: %v", err)
	}
}

func TestValidateDecodedPackage(t *testing.T) {
	for _, s := range subjects(t) {
		indented, err := json.MarshalIndent(s.pkg, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var p toolresult.Package
		if err := json.Unmarshal(indented, &p); err != nil {
			t.Fatal(err)
		}
		if problems := toolresult.Validate(s.bound, s.spec, &p); len(problems) > 0 {
			t.Errorf("%s: %v", s.name, problems)
		}
	}
}

func TestValidateBrokenPackage(t *testing.T) {
	spec := orderSpec(t)
	b := bind(t, orderCall(), spec.Contract())
	for name, edit := range map[string]func(*toolresult.Package){
		"no data":        func(p *toolresult.Package) { p.ModelResult.Data = nil },
		"empty data":     func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage{} },
		"broken data":    func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage(`{`) },
		"injected field": func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage(`{},"note":1`) },
		"injected error": func(p *toolresult.Package) { p.ModelResult.Data = json.RawMessage(`{},"error":null`) },
		"repeated key": func(p *toolresult.Package) {
			p.ModelResult.Data = json.RawMessage(`{"order_ref":"x","order_ref":"ORDER-7","status":"paid"}`)
		},
		"not UTF-8":       func(p *toolresult.Package) { r := "\xff"; p.ModelResult.Provenance.ResourceRevision = &r },
		"audit not UTF-8": func(p *toolresult.Package) { p.ProtectedAudit.OperationID = "op-1\xff" },
		"no redactions":   func(p *toolresult.Package) { p.ProtectedAudit.Redactions = nil },
		"no error code":   func(p *toolresult.Package) { *p = *b.Failure("NO_SUCH_CODE", "", time.Unix(now, 0)) },
		"OK as an error":  func(p *toolresult.Package) { *p = *b.Failure(toolresult.OK, "", time.Unix(now, 0)) },
		"year 10000": func(p *toolresult.Package) {
			*p = *b.Failure(toolresult.NotFound, "", time.Unix(contract.MaxTime+1, 0))
		},
	} {
		p := b.Success(spec.Source(), orderEvidence(), toolresult.Fresh)
		edit(p)
		if len(toolresult.Validate(b, spec, p)) == 0 {
			t.Errorf("%s is accepted", name)
		}
	}
	if len(toolresult.Validate(b, spec, nil)) == 0 {
		t.Error("no package is accepted")
	}
}
