package toolresult

import (
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
)

// An Expected is a call of a turn, and the spec of its tool (nil when the tool
// is unregistered).
type Expected struct {
	Bound *Bound
	Spec  *Spec
}

// ValidateSet checks the results of one turn against its calls, in any order:
// each call has exactly one result, no result belongs to another call, and each
// is valid by itself. Results are matched by (response_id, call_id) as their
// audit says; a swapped result fails its own validation.
func ValidateSet(calls []Expected, results []json.RawMessage) []Problem {
	type identity struct{ response, call string }
	var ps problems
	open := make(map[identity]int, len(calls))
	for i, c := range calls {
		id := identity{c.Bound.call.ResponseID, c.Bound.call.CallID}
		if _, twice := open[id]; twice {
			ps.add(fmt.Sprintf("calls[%d]", i), "has the identity of an earlier call of the turn")
			continue
		}
		open[id] = i
	}
	seen := make(map[int]bool, len(calls))
	for i, raw := range results {
		path := fmt.Sprintf("results[%d]", i)
		var p struct {
			ProtectedAudit struct {
				ProviderContext struct {
					ResponseID string `json:"response_id"`
					CallID     string `json:"call_id"`
				} `json:"provider_context"`
			} `json:"protected_audit"`
		}
		if jsonv2.Unmarshal(raw, &p) != nil {
			ps.add(path, "is not a package")
			continue
		}
		context := p.ProtectedAudit.ProviderContext
		call, known := open[identity{context.ResponseID, context.CallID}]
		switch {
		case !known:
			ps.add(path, "belongs to no call of this turn")
		case seen[call]:
			ps.add(path, fmt.Sprintf("is a second result for calls[%d]", call))
		default:
			seen[call] = true
			for _, problem := range ValidateJSON(calls[call].Bound, calls[call].Spec, raw) {
				ps.add(path+"."+problem.Path, problem.Rule)
			}
		}
	}
	for i := range calls {
		if id := calls[i].Bound.call; open[identity{id.ResponseID, id.CallID}] == i && !seen[i] {
			ps.add(fmt.Sprintf("calls[%d]", i), "has no result")
		}
	}
	return ps
}
