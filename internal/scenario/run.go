package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A CannotRunError says that a step of a set has no answer, neither a right nor
// a wrong one, so that nothing can be said about the set. It names the rule and
// never a value of the call.
type CannotRunError struct {
	Case, Step string // their ids
	Rule       string

	cause error
}

func (e *CannotRunError) Error() string {
	return fmt.Sprintf("scenario: case %q step %q could not run: %s", e.Case, e.Step, e.Rule)
}

// Unwrap returns the cause, for example a [*toolresult.InputError].
func (e *CannotRunError) Unwrap() error { return e.cause }

// Run runs every case in a world of its own and every step of it in order, and
// compares the answers with the expected ones. A wrong answer stops nothing: it
// is in the report. An error means that there is no report: a
// [*CannotRunError], or ctx's own when it ended between two steps.
func (s *Set) Run(ctx context.Context) (*Report, error) {
	specs, err := exampleSpecs()
	if err != nil {
		return nil, err
	}
	report := &Report{Gate: Pass, Results: make([]CaseResult, 0, len(s.cases))}
	for _, c := range s.cases {
		w := &caseRun{principal: c.principal, memory: newMemory(specs), refs: map[string]string{}}
		result := CaseResult{ID: c.id, Passed: true, Steps: make([]StepResult, 0, len(c.steps))}
		for _, st := range c.steps {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			checked, err := w.step(ctx, st)
			if err != nil {
				return nil, &CannotRunError{c.id, st.id, err.Error(), err}
			}
			result.add(checked)
		}
		report.add(result)
	}
	return report, nil
}

// A caseRun is a case that is under way.
type caseRun struct {
	principal toolresult.Principal
	memory    *memory
	refs      map[string]string // the status_ref that a step's answer named
}

var (
	errNoStatusRef        = errors.New("the step that status_ref_from names has no status_ref")
	errUnknownForApproval = errors.New("an unknown tool cannot be approved")
)

func (w *caseRun) step(ctx context.Context, st step) (StepResult, error) {
	contract := toolresult.UnregisteredContract(st.call.Name)
	t, known := w.memory.tools[st.call.Name]
	if known {
		contract = t.spec.Contract()
	}
	b, err := toolresult.Bind(w.principal, st.call, contract)
	if err != nil {
		return StepResult{}, err
	}
	pkg, err := w.answer(ctx, st, b, known)
	if err != nil {
		return StepResult{}, err
	}
	w.refs[st.id] = pkg.StatusRef()

	result := StepResult{StepID: st.id, Mismatches: compare(st.expected, answerOf(pkg, w.memory.effects))}
	for _, p := range toolresult.Validate(b, t.spec, pkg) {
		result.Problems = append(result.Problems, p.String())
	}
	result.Passed = len(result.Mismatches) == 0 && len(result.Problems) == 0
	return result, nil
}

func (w *caseRun) answer(ctx context.Context, st step, b *toolresult.Bound, known bool) (*toolresult.Package, error) {
	r := &request{bound: b, failure: st.failure, now: st.now}
	if st.action == actionQuery {
		ref := w.refs[st.statusRefFrom]
		if ref == "" {
			return nil, errNoStatusRef
		}
		return w.memory.queryStatus(ctx, r, ref)
	}
	if !known && st.approval != noApproval {
		return nil, errUnknownForApproval
	}
	var err error
	if r.approvals, err = Approvals(b, st.approval, st.now); err != nil {
		return nil, err
	}
	return w.memory.dispatch(ctx, r)
}
