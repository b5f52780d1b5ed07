package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type common struct {
	ID string `json:"id" schema:"minLength=1"`
}

type line struct {
	SKU    string  `json:"sku" schema:"pattern=^[A-Z]{1,3}$,description=A code, of letters"`
	Amount float64 `json:"amount" schema:"minimum=0.5,maximum=100"`
}

type everything struct {
	common
	Name    string             `json:"name" schema:"minLength=1,maxLength=64" jsonschema:"What to call it"`
	Kind    string             `json:"kind" schema:"enum=duplicate|damaged|other"`
	Level   int8               `json:"level" schema:"enum=1|2|3"`
	Count   uint               `json:"count" schema:"minimum=1,maximum=10"`
	Open    bool               `json:"open" schema:"description=Is it open?"`
	Note    *string            `json:"note,omitempty" schema:"maxLength=5"`
	Choice  *string            `json:"choice,omitzero" schema:"enum=a|b"`
	Lines   []line             `json:"lines" schema:"minItems=1,maxItems=3,uniqueItems=true"`
	Tags    []string           `json:"tags,omitempty" schema:"items.minLength=1,items.enum=x|y"`
	Grid    [2][]*int          `json:"grid,omitempty" schema:"items.maxItems=2,items.items.maximum=9"`
	Prices  map[string]float64 `json:"prices,omitempty"`
	Any     any                `json:"any,omitempty" schema:"description=Anything"`
	Raw     json.RawMessage    `json:"raw,omitempty"`
	At      time.Time          `json:"at,omitzero"`
	Ignored string             `json:"-"`
	NoTag   string
	//lint:ignore U1000 an unexported field is no part of a schema
	private string
}

const everythingSchema = `{"type":"object","properties":{
	"id":{"type":"string","minLength":1},
	"name":{"type":"string","description":"What to call it","minLength":1,"maxLength":64},
	"kind":{"type":"string","enum":["duplicate","damaged","other"]},
	"level":{"type":"integer","enum":[1,2,3],"minimum":-128,"maximum":127},
	"count":{"type":"integer","minimum":1,"maximum":10},
	"open":{"type":"boolean","description":"Is it open?"},
	"note":{"type":["string","null"],"maxLength":5},
	"choice":{"type":["string","null"],"enum":["a","b",null]},
	"lines":{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true,"items":{"type":"object","properties":{
		"sku":{"type":"string","description":"A code, of letters","pattern":"^[A-Z]{1,3}$"},
		"amount":{"type":"number","minimum":0.5,"maximum":100}},
		"required":["sku","amount"],"additionalProperties":false}},
	"tags":{"type":"array","items":{"type":"string","enum":["x","y"],"minLength":1}},
	"grid":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"array","maxItems":2,"items":{"type":["integer","null"],"maximum":9}}},
	"prices":{"type":"object","additionalProperties":{"type":"number"}},
	"any":{"description":"Anything"},
	"raw":true,
	"at":{"type":"string","format":"date-time"},
	"NoTag":{"type":"string"}},
	"required":["id","name","kind","level","count","open","lines","NoTag"],
	"additionalProperties":false}`

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestInfer(t *testing.T) {
	s, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, []byte(everythingSchema)), decode(t, s.JSON())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 10 {
		again, err := Infer(reflect.TypeFor[everything]())
		if err != nil || string(again.JSON()) != string(s.JSON()) {
			t.Fatalf("inference is not deterministic: %v", err)
		}
	}
	// A model reads the fields in the order in which the author wrote them.
	text := string(s.JSON())
	if strings.Index(text, `"id"`) > strings.Index(text, `"name"`) || strings.Index(text, `"lines":`) > strings.Index(text, `"tags":`) {
		t.Error("fields are out of order")
	}
}

func TestInferredKeywords(t *testing.T) {
	s, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	good := func() map[string]any {
		return map[string]any{
			"id": "i", "name": "n", "kind": "other", "level": int64(2), "count": int64(1), "open": true, "NoTag": "",
			"lines": []any{map[string]any{"sku": "AB", "amount": int64(1)}},
		}
	}
	if got := s.ValidateInput(good()); got != nil {
		t.Fatal(got)
	}
	valid, manyLines := good()["lines"].([]any)[0], []any{}
	for i := range 4 {
		manyLines = append(manyLines, map[string]any{"sku": "AB", "amount": int64(i + 1)})
	}
	tests := []struct {
		field string
		value any
		want  []string
	}{
		{"id", " ", []string{"$.id: minLength"}},
		{"name", strings.Repeat("é", 64), nil},
		{"name", strings.Repeat("é", 65), []string{"$.name: maxLength"}},
		{"name", nil, []string{"$.name: type"}},
		{"kind", "", []string{"$.kind: enum"}},
		{"kind", "Other", []string{"$.kind: enum"}},
		{"level", int64(4), []string{"$.level: enum"}},
		{"level", 1.0, []string{"$.level: enum", "$.level: type"}},
		{"count", int64(0), []string{"$.count: minimum"}},
		{"count", int64(10), nil},
		{"count", int64(11), []string{"$.count: maximum"}},
		{"count", true, []string{"$.count: type"}},
		{"open", "true", []string{"$.open: type"}},
		{"note", nil, nil},
		{"note", "123456", []string{"$.note: maxLength"}},
		{"choice", nil, nil},
		{"choice", "b", nil},
		{"choice", "c", []string{"$.choice: enum"}},
		{"lines", []any{}, []string{"$.lines: minItems"}},
		{"lines", nil, []string{"$.lines: type"}},
		{"lines", manyLines, []string{"$.lines: maxItems"}},
		{"lines", []any{valid, valid}, []string{"$.lines: uniqueItems"}},
		{"lines", []any{map[string]any{"sku": "ABCD", "amount": 0.25, "x": nil}},
			[]string{"$.lines[0].amount: minimum", "$.lines[0].sku: pattern", "$.lines[0].x: unknown field"}},
		{"lines", []any{map[string]any{"sku": "A", "amount": 0.5}}, nil},
		{"lines", []any{map[string]any{}}, []string{"$.lines[0].amount: required", "$.lines[0].sku: required"}},
		{"tags", []any{"x", "z"}, []string{"$.tags[1]: enum"}},
		{"tags", []any{" "}, []string{"$.tags[0]: enum"}},
		{"grid", []any{[]any{int64(9), nil}, []any{}}, nil},
		{"grid", []any{[]any{int64(10), nil, nil}}, []string{"$.grid: minItems", "$.grid[0]: maxItems", "$.grid[0][0]: maximum"}},
		{"prices", map[string]any{"p": 1.5, "q": "x"}, []string{"$.prices.q: type"}},
		{"any", map[string]any{"x": []any{}}, nil},
		{"raw", nil, nil},
		{"Ignored", "x", []string{"$.Ignored: unknown field"}},
		{"private", "x", []string{"$.private: unknown field"}},
		{"notag", "x", []string{"$.notag: unknown field"}},
	}
	for _, tt := range tests {
		v := good()
		v[tt.field] = tt.value
		if diff := cmp.Diff(tt.want, texts(s.ValidateInput(v))); diff != "" {
			t.Errorf("%s = %v (-want +got):\n%s", tt.field, tt.value, diff)
		}
	}
}

type ownForm struct{ X string }

func (ownForm) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestInferRefuses(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{map[string]any{}, "text to Compile"},
		{json.RawMessage{}, "text to Compile"},
		{"", "not a plain struct"},
		{[]string{}, "not a plain struct"},
		{&struct{}{}, "not a plain struct"},
		{time.Time{}, "not a plain struct"},
		{ownForm{}, "not a plain struct"},
		{struct{ C chan int }{}, "unsupported"},
		{struct{ F func() }{}, "unsupported"},
		{struct{ M map[int]string }{}, "map key"},
		{struct{ M map[netip.Addr]string }{}, "keys have to be strings"},
		{struct{ B []byte }{}, "use string"},
		{struct{ B [4]byte }{}, "use string"},
		{struct{ B big.Int }{}, "JSON form of its own"},
		{struct{ A netip.Addr }{}, "JSON form of its own"},
		{struct{ O []ownForm }{}, "JSON form of its own"},
		{struct{ R *json.RawMessage }{}, "not supported"},
		{struct{ E error }{}, "not supported"},
		{struct{ D time.Duration }{}, "no JSON form"},
		{struct {
			N int `json:",string"`
		}{}, "json option"},
		{struct {
			common `json:"c"`
		}{}, "embedded"},
		{struct {
			common `schema:"description=x"`
		}{}, "embedded"},
		{struct {
			A string `json:"B"`
			B string
		}{}, "same JSON name"},
		{struct {
			A string `json:"-" schema:"minLength=1"`
		}{}, "not in JSON"},
		{struct {
			a string `schema:"minLength=1"`
		}{}, "not in JSON"},

		{struct {
			A string `schema:"required"`
		}{}, "key=value"},
		{struct {
			A string `schema:"minlength=1"`
		}{}, "minlength: not known"},
		{struct {
			A string `schema:"pattern=^a$,maxLenght=1"`
		}{}, "maxLenght: not known"},
		{struct {
			A string `schema:"minLength=1,minLength=2"`
		}{}, "repeats minLength"},
		{struct {
			A string `schema:"minLength=-1"`
		}{}, "minLength: bad value"},
		{struct {
			A string `schema:"minLength=99999999999"`
		}{}, "minLength: bad value"},
		{struct {
			A string `schema:"minLength=1,foo"`
		}{}, "minLength: bad value"},
		{struct {
			A string `schema:"minLength=3,maxLength=2"`
		}{}, "minimum above"},
		{struct {
			A string `schema:"minimum=1"`
		}{}, "minimum: not known"},
		{struct {
			A string `schema:"enum=a,b"`
		}{}, "separated by |"},
		{struct {
			A string `schema:"enum=a||b"`
		}{}, "enum: bad value"},
		{struct {
			A string `schema:"enum=a|a"`
		}{}, "a value twice"},
		{struct {
			A string `schema:"pattern=("`
		}{}, "pattern: bad value"},
		{struct {
			A string `schema:"pattern="`
		}{}, "pattern: bad value"},
		{struct {
			A string `schema:"description=x" jsonschema:"y"`
		}{}, "two descriptions"},
		{struct {
			A string `schema:"items.minLength=1"`
		}{}, "not known"},
		{struct {
			A int `schema:"minLength=1"`
		}{}, "minLength: not known"},
		{struct {
			A int `schema:"minimum=1.5"`
		}{}, "minimum: bad value"},
		{struct {
			A int `schema:"minimum=9007199254740992"`
		}{}, "minimum: bad value"},
		{struct {
			A int `schema:"enum=1|x"`
		}{}, "enum: bad value"},
		{struct {
			A uint8 `schema:"maximum=256"`
		}{}, "outside the range"},
		{struct {
			A uint `schema:"minimum=-1"`
		}{}, "outside the range"},
		{struct {
			A float64 `schema:"minimum=NaN"`
		}{}, "minimum: bad value"},
		{struct {
			A float64 `schema:"enum=1.5"`
		}{}, "enum: not known"},
		{struct {
			A bool `schema:"enum=true"`
		}{}, "enum: not known"},
		{struct {
			A []string `schema:"minLength=1"`
		}{}, "minLength: not known"},
		{struct {
			A []string `schema:"uniqueItems=false"`
		}{}, "uniqueItems: not known"},
		{struct {
			A []string `schema:"items.minimum=1"`
		}{}, ".A[]: schema tag minimum: not known"},
		{struct {
			A [2]string `schema:"minItems=1"`
		}{}, "minItems: not known"},
		{struct {
			A map[string]string `schema:"minLength=1"`
		}{}, "minLength: not known"},
		{struct {
			A struct{} `schema:"minLength=1"`
		}{}, "minLength: not known"},
		{struct {
			A any `schema:"enum=a"`
		}{}, "enum: not known"},
		{struct {
			A struct {
				B string `schema:"foo=1"`
			}
		}{}, ".A.B: schema tag foo"},
	}
	for _, tt := range tests {
		typ := reflect.TypeOf(tt.value)
		s, err := Infer(typ)
		var e *Error
		if s != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Infer(%v): got %v, want an error with %q", typ, err, tt.want)
		}
	}
	if _, err := Infer(nil); err == nil {
		t.Error("Infer(nil) succeeded")
	}
}

type openNested struct {
	Extra map[string]any `json:"extra"`
}

func TestMapFieldsAreOpen(t *testing.T) {
	s, err := For[openNested]()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.ValidateInput(map[string]any{"extra": map[string]any{"k": 1.5, "l": nil}}); got != nil {
		t.Error(got)
	}
}

type tree struct {
	Name     string          `json:"name" schema:"minLength=1"`
	Children []tree          `json:"children"`
	Next     *tree           `json:"next,omitempty" schema:"description=The next one"`
	ByName   map[string]tree `json:"by_name,omitempty"`
}

type expression struct {
	Root operand `json:"root"`
}

type operand struct {
	Value *int      `json:"value"`
	Parts []operand `json:"parts,omitempty"`
	Group *cluster  `json:"group,omitempty"`
	Rows  rows      `json:"rows,omitempty"`
}

type cluster struct {
	Operands []operand `json:"operands"`
}

type rows []rows

type ring[T any] struct {
	Value T        `json:"value"`
	Next  *ring[T] `json:"next"`
}

type forest struct {
	Ints  ring[int]    `json:"ints"`
	Texts ring[string] `json:"texts"`
}

type endless struct {
	More []endless `json:"more" schema:"minItems=1"`
}

func TestInferTypesThatContainThemselves(t *testing.T) {
	for _, tt := range []struct {
		of   any
		want string
	}{
		{tree{}, `{"type":"object","properties":{"name":{"type":"string","minLength":1},"children":{"type":"array","items":{"$ref":"#"}},
			"next":{"description":"The next one","anyOf":[{"$ref":"#"},{"type":"null"}]},
			"by_name":{"type":"object","additionalProperties":{"$ref":"#"}}},"required":["name","children"],"additionalProperties":false}`},
		{expression{}, `{"type":"object","properties":{"root":{"$ref":"#/$defs/operand"}},"required":["root"],"additionalProperties":false,"$defs":{
			"operand":{"type":"object","properties":{"value":{"type":["integer","null"]},"parts":{"type":"array","items":{"$ref":"#/$defs/operand"}},
				"group":{"type":["object","null"],"properties":{"operands":{"type":"array","items":{"$ref":"#/$defs/operand"}}},"required":["operands"],"additionalProperties":false},
				"rows":{"$ref":"#/$defs/rows"}},"required":["value"],"additionalProperties":false},
			"rows":{"type":"array","items":{"$ref":"#/$defs/rows"}}}}`},
		{forest{}, `{"type":"object","properties":{"ints":{"$ref":"#/$defs/ring_int"},"texts":{"$ref":"#/$defs/ring_string"}},"required":["ints","texts"],
			"additionalProperties":false,"$defs":{
			"ring_int":{"type":"object","properties":{"value":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/ring_int"},{"type":"null"}]}},"required":["value","next"],"additionalProperties":false},
			"ring_string":{"type":"object","properties":{"value":{"type":"string"},"next":{"anyOf":[{"$ref":"#/$defs/ring_string"},{"type":"null"}]}},"required":["value","next"],"additionalProperties":false}}}`},
	} {
		s, err := Infer(reflect.TypeOf(tt.of))
		if err != nil {
			t.Errorf("%T: %v", tt.of, err)
			continue
		}
		if diff := cmp.Diff(decode(t, []byte(tt.want)), decode(t, s.JSON())); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.of, diff)
		}
	}
	if _, err := For[endless](); err == nil || !strings.Contains(err.Error(), "deeper than") {
		t.Errorf("endless: got %v", err)
	}
	s := mustInfer[tree](t)
	leaf := func(name string) map[string]any { return map[string]any{"name": name, "children": []any{}} }
	v := leaf("a")
	v["next"], v["children"], v["by_name"] = leaf("b"), []any{leaf(" ")}, map[string]any{"c": map[string]any{"x": nil}}
	want := []string{"$.by_name.c.children: required", "$.by_name.c.name: required", "$.by_name.c.x: unknown field", "$.children[0].name: minLength"}
	got := texts(s.ValidateInput(v))
	v["next"] = nil
	if again := texts(s.ValidateInput(v)); len(got) != len(again) {
		t.Errorf("null for a pointer: %v", again)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
