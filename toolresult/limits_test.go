package toolresult_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

var identifierTests = []struct {
	value string
	ok    bool
}{
	{"a", true}, {"\u200b", true}, {"\ufeff", true}, {"\u0000", true}, {" a ", true}, {"\u001b", true},
	{strings.Repeat("a", 255), true}, {strings.Repeat("a", 256), false},
	{strings.Repeat("😀", 255), true}, {strings.Repeat("😀", 256), false},
	{"", false}, {" ", false}, {"\t\n\v\f\r", false}, {"\u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000", false},
	{"\u001c", false}, {"\u001d\u001e\u001f", false}, {"\xff", false}, {"a\xed\xa0\x80", false},
}

func TestIdentifiers(t *testing.T) {
	fields := map[string]func(*toolresult.Call, string){
		"call_id":          func(c *toolresult.Call, s string) { c.CallID = s },
		"operation_id":     func(c *toolresult.Call, s string) { c.OperationID = s },
		"name":             func(c *toolresult.Call, s string) { c.Name = s },
		"provider":         func(c *toolresult.Call, s string) { c.Provider = s },
		"api_family":       func(c *toolresult.Call, s string) { c.APIFamily = s },
		"response_id":      func(c *toolresult.Call, s string) { c.ResponseID = s },
		"adapter_revision": func(c *toolresult.Call, s string) { c.AdapterRevision = s },
		"idempotency_key":  func(c *toolresult.Call, s string) { c.IdempotencyKey = s },
	}
	for _, tt := range identifierTests {
		for field, set := range fields {
			c := refundCall()
			set(&c, tt.value)
			want := field
			if tt.ok || field == "idempotency_key" && tt.value == "" {
				want = ""
			}
			wantField(t, c.Check(), want)
		}
		for field, p := range map[string]toolresult.Principal{
			"principal.tenant_id":  {TenantID: tt.value, SubjectID: "s"},
			"principal.subject_id": {TenantID: "t", SubjectID: tt.value},
			"principal.roles[0]":   {TenantID: "t", SubjectID: "s", Roles: []string{tt.value}},
		} {
			if tt.ok {
				field = ""
			}
			wantField(t, p.Check(), field)
		}
	}
}

func TestErrorsNameNoValue(t *testing.T) {
	const secret = "s3cret"
	long := strings.Repeat(secret, 100)
	for _, err := range []error{
		toolresult.Call{ExecutionContext: toolresult.ExecutionContext{CallID: long}}.Check(),
		toolresult.Principal{TenantID: "t", SubjectID: "s", Roles: []string{secret, secret}}.Check(),
	} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v", err)
		}
	}
}

func TestRoles(t *testing.T) {
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf("role-%02d", i)
	}
	for _, tt := range []struct {
		roles []string
		field string
	}{
		{nil, ""}, {many[:32], ""}, {many, "principal.roles"}, {[]string{"b", "a"}, "principal.roles"}, {[]string{"a", "a"}, "principal.roles"},
		{[]string{"\ufb33", "\U0001f600"}, ""}, {[]string{"\U0001f600", "\ufb33"}, "principal.roles"}, // code points, not UTF-16
		{[]string{"a", "\u001c"}, "principal.roles[1]"},
	} {
		wantField(t, toolresult.Principal{TenantID: "t", SubjectID: "s", Roles: tt.roles}.Check(), tt.field)
	}
}

func TestBindArguments(t *testing.T) {
	nested := func(n int) string { return `{"x":` + strings.Repeat("[", n) + "1" + strings.Repeat("]", n) + `}` }
	for _, tt := range []struct {
		arguments, want string
		refused         canonjson.Kind
	}{
		{"", "{}", ""}, {"{ }", "{}", ""}, {`[1]`, "[1]", ""}, {`{"b":-0,"a":1E2}`, `{"a":100.0,"b":0}`, ""},
		{nested(30), nested(30), ""}, {nested(31), "", canonjson.KindNesting},
		{`{"amount":1,"amount":999}`, "", canonjson.KindDuplicateKey}, {`{"amount":1,"amoun\u0074":999}`, "", canonjson.KindDuplicateKey},
		{`{"n":9007199254740992}`, "", canonjson.KindIntegerRange}, {`{"n":1e400}`, "", canonjson.KindNonFinite},
		{`{"a":`, "", canonjson.KindSyntax}, {" ", "", canonjson.KindSyntax}, {"\xff", "", canonjson.KindInvalidUTF8},
	} {
		b, err := toolresult.Bind(owner, callOf("t", tt.arguments), toolresult.UnregisteredContract("t"))
		switch {
		case tt.refused != "":
			if !errors.Is(err, toolresult.ErrInvalidInput) || !errors.Is(err, &canonjson.Error{Kind: tt.refused}) {
				t.Errorf("%.40s: got %v", tt.arguments, err)
			}
		case err != nil || b.Arguments() != tt.want:
			t.Errorf("%.40s: got %v, %v", tt.arguments, b, err)
		}
	}
	_, err := toolresult.Bind(owner, callOf("a", ""), toolresult.UnregisteredContract("b"))
	wantField(t, err, "name")
	c := callOf("t", "")
	c.CallID = "\xff"
	_, err = toolresult.Bind(owner, c, toolresult.UnregisteredContract("t"))
	wantField(t, err, "call_id")
	grows := `{"x":[` + strings.TrimSuffix(strings.Repeat("1e15,", 1000), ",") + `],"y":"` + strings.Repeat("a", 60000-5010) + `"}`
	_, err = toolresult.Bind(owner, callOf("t", grows), toolresult.UnregisteredContract("t"))
	wantField(t, err, "arguments")
}

func TestDefensiveCopies(t *testing.T) {
	raw := []byte(`{"order_ref":"ORDER-7","reason":"damaged"}`)
	p := toolresult.Proposal{Name: "create_refund_draft", Arguments: raw}
	c := toolresult.NewCall(p, refundCall().ExecutionContext)
	query := c.StatusQuery("status_0123456789abcdef0123456789abcdef")
	b := bind(t, c, refundSpec(t).Contract())
	want := string(raw)
	raw[2] = 'X'
	c.Arguments[3] = 'X'
	if string(query.Arguments) != want || b.Arguments() != want || query.OperationID != "op-1" || query.IdempotencyKey != "key-1" {
		t.Errorf("a later change reached a copy: %s, %s", query.Arguments, b.Arguments())
	}
}
