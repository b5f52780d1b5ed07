package scenario

import "github.com/toolruntime/toolruntime-go/toolresult"

// A Gate is the verdict of a report.
type Gate string

// The gates.
const (
	Pass  Gate = "PASS"  // every step passed
	Block Gate = "BLOCK" // at least one did not
)

// A Report says which steps of a set passed.
type Report struct {
	Gate        Gate         `json:"gate"`
	Cases       int          `json:"cases"`
	CasesPassed int          `json:"cases_passed"`
	Steps       int          `json:"steps"`
	StepsPassed int          `json:"steps_passed"`
	Results     []CaseResult `json:"results"`
}

// A CaseResult is what became of a case; it passed if all its steps did.
type CaseResult struct {
	ID     string       `json:"id"`
	Passed bool         `json:"passed"`
	Steps  []StepResult `json:"steps"`
}

// A StepResult is what became of a step: it passed if its answer is the
// expected one and the package is valid.
type StepResult struct {
	StepID     string     `json:"step_id"`
	Passed     bool       `json:"passed"`
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	Problems   []string   `json:"problems,omitempty"` // of the package's validation
}

// A Mismatch is a part of an answer that is not the expected one. What data
// says stays out of the report; that it differs does not.
type Mismatch struct {
	Field string `json:"field"`
	Want  any    `json:"want,omitempty"`
	Got   any    `json:"got,omitempty"`
	Note  string `json:"note,omitempty"`
}

func (r *Report) add(c CaseResult) {
	r.Results = append(r.Results, c)
	r.Cases++
	if c.Passed {
		r.CasesPassed++
	} else {
		r.Gate = Block
	}
	r.Steps += len(c.Steps)
	for _, s := range c.Steps {
		if s.Passed {
			r.StepsPassed++
		}
	}
}

func (c *CaseResult) add(s StepResult) {
	c.Steps = append(c.Steps, s)
	c.Passed = c.Passed && s.Passed
}

// answerOf is a package as a set expects it: a success has the code OK and the
// recovery none.
func answerOf(p *toolresult.Package, effects int64) answer {
	m := p.ModelResult
	a := answer{code: string(p.Code()), status: string(m.Status), outcome: string(m.Execution.Outcome), recovery: "none",
		delivery: string(p.Delivery()), data: "null", sideEffectCount: effects}
	if m.Error != nil {
		a.recovery = string(m.Error.Recovery)
	}
	if m.Data != nil {
		a.data = string(m.Data)
	}
	return a
}

func compare(want, got answer) []Mismatch {
	var ms []Mismatch
	for _, f := range [...]struct {
		name      string
		want, got any
	}{
		{"code", want.code, got.code},
		{"status", want.status, got.status},
		{"outcome", want.outcome, got.outcome},
		{"recovery", want.recovery, got.recovery},
		{"delivery", want.delivery, got.delivery},
		{"side_effect_count", want.sideEffectCount, got.sideEffectCount},
	} {
		if f.want != f.got {
			ms = append(ms, Mismatch{Field: f.name, Want: f.want, Got: f.got})
		}
	}
	if want.data != got.data {
		ms = append(ms, Mismatch{Field: "data", Note: "differs"})
	}
	return ms
}
