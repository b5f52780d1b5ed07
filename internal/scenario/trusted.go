package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/internal/limits"
	"github.com/toolruntime/toolruntime-go/internal/schema"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A textRule returns the rule that a string breaks, or "".
type textRule func(string) string

func anyText(string) string { return "" }

func notBlank(s string) string {
	if schema.IsBlank(s) {
		return "must not be blank"
	}
	return ""
}

// identifier is the full rule of the contract for names and ids.
func identifier(s string) string {
	return contract.Identifier(s)
}

func keyLength(s string) string {
	if n := utf8.RuneCountInString(s); n < 1 || n > 255 {
		return "must have 1 to 255 code points"
	}
	return ""
}

// only is the rule of a text that the contract fixes.
func only(want string) textRule { return oneOf(want) }

func oneOf(allowed ...string) textRule {
	return func(s string) string {
		if slices.Contains(allowed, s) {
			return ""
		}
		if len(allowed) == 1 {
			return "must be " + allowed[0]
		}
		return "must be one of " + strings.Join(allowed, ", ")
	}
}

// principal reads a principal. The rule holds for every identifier in it; how
// many roles there may be is left to the caller.
func (o object) principal(rule textRule) toolresult.Principal {
	p := o.child("principal", "tenant_id", "subject_id", "roles")
	tenant, _ := p.text("tenant_id", rule)
	subject, _ := p.text("subject_id", rule)
	list, _ := p.list("roles")
	roles, whole := make([]string, 0, len(list)), true
	for i, v := range list {
		place := fmt.Sprintf("%s[%d]", p.at("roles"), i)
		role, ok := v.(string)
		if !ok {
			o.r.add(place, "must be a string")
			whole = false
			continue
		}
		if broken := rule(role); broken != "" {
			o.r.add(place, broken)
		}
		roles = append(roles, role)
	}
	if whole && !contract.Ordered(roles) {
		o.r.add(p.at("roles"), "must be sorted and unique")
	}
	return toolresult.Principal{TenantID: tenant, SubjectID: subject, Roles: roles}
}

// call reads a proposal and its execution context. The rule holds for the ids
// of the context, toolName for the proposal; an absent key is "".
func (o object) call(rule, toolName textRule, key func(object) string) toolresult.Call {
	p := o.child("proposal", "name", "arguments")
	name, _ := p.text("name", toolName)
	arguments := p.canonical("arguments", false)

	c := o.child("execution_context", "provider", "api_family", "response_id", "call_id",
		"operation_id", "idempotency_key", "adapter_revision")
	provider, ok1 := c.text("provider", rule)
	family, ok2 := c.text("api_family", rule)
	revision, ok3 := c.text("adapter_revision", rule)
	response, _ := c.text("response_id", rule)
	call, _ := c.text("call_id", rule)
	operation, _ := c.text("operation_id", rule)
	context := toolresult.ExecutionContext{
		Provider: provider, APIFamily: family, ResponseID: response, CallID: call,
		OperationID: operation, IdempotencyKey: key(c), AdapterRevision: revision,
	}
	var broken *toolresult.InputError
	if ok1 && ok2 && ok3 && errors.As(limits.Profile(context.Profile(), toolresult.DefaultProfiles()), &broken) {
		o.r.add(c.place, broken.Field+" "+broken.Rule)
	}
	return toolresult.NewCall(toolresult.Proposal{Name: name, Arguments: json.RawMessage(arguments)}, context)
}
