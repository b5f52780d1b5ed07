package canonjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

func TestMarshal(t *testing.T) {
	tests := map[string]struct {
		in   any
		want string
	}{
		"null":            {nil, "null"},
		"booleans":        {[]any{true, false}, "[true,false]"},
		"empty":           {map[string]any{"a": []any{}, "o": map[string]any{}}, `{"a":[],"o":{}}`},
		"nil containers":  {[]any{[]any(nil), map[string]any(nil)}, "[[],{}]"},
		"Go integers":     {[]any{int(-1), int8(-2), int16(3), int32(4), int64(5)}, "[-1,-2,3,4,5]"},
		"Go unsigned":     {[]any{uint(1), uint8(2), uint16(3), uint32(4), uint64(5)}, "[1,2,3,4,5]"},
		"integer bounds":  {[]any{canonjson.MaxInt, -canonjson.MaxInt, uint64(canonjson.MaxInt)}, "[9007199254740991,-9007199254740991,9007199254740991]"},
		"short escapes":   {"\"\\\b\f\n\r\t", `"\"\\\b\f\n\r\t"`},
		"other controls":  {"\x00\x1f", `"\u0000\u001f"`},
		"kept raw":        {"/<>&\x7f\u2028\u2029é😀", "\"/<>&\x7f\u2028\u2029é😀\""},
		"keys by bytes":   {map[string]any{"\U00010000": 1, "\uffff": 2, "b": 3, "a": 4, "": 5, "B": 6}, "{\"\":5,\"B\":6,\"a\":4,\"b\":3,\"\uffff\":2,\"\U00010000\":1}"},
		"escaped key":     {map[string]any{"\n": 1}, `{"\n":1}`},
		"raw":             {map[string]any{"a": canonjson.Raw(`{"b":1.0}`)}, `{"a":{"b":1.0}}`},
		"float zero":      {[]any{0.0, math.Copysign(0, -1)}, "[0.0,-0.0]"},
		"float plain":     {[]any{1.0, -100.0, 0.1, 0.0001, 123456.789, 1e15}, "[1.0,-100.0,0.1,0.0001,123456.789,1000000000000000.0]"},
		"float exponent":  {[]any{1e16, 1.5e300, 1e-5, -1.25e-7, 5e-324}, "[1e+16,1.5e+300,1e-05,-1.25e-07,5e-324]"},
		"float below 16":  {math.Nextafter(1e16, 0), "9999999999999998.0"},
		"float below -4":  {math.Nextafter(1e-4, 0), "9.999999999999999e-05"},
		"float, not sums": {0.1 + math.Nextafter(0.2, 1), "0.30000000000000004"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := canonjson.Marshal(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("Marshal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppendKeepsPrefix(t *testing.T) {
	got, err := canonjson.Append([]byte("x="), []any{1}, 0)
	if diff := cmp.Diff("x=[1]", string(got)); diff != "" || err != nil {
		t.Errorf("Append (-want +got), error %v:\n%s", err, diff)
	}
}

func TestMarshalRejects(t *testing.T) {
	long := strings.Repeat("é", canonjson.MaxString+1)
	tests := map[string]struct {
		in   any
		kind canonjson.Kind
		path string
	}{
		"struct":              {map[string]any{"a": struct{}{}}, canonjson.KindType, "$.a"},
		"json.Number":         {json.Number("1"), canonjson.KindType, "$"},
		"float32":             {float32(0.1), canonjson.KindType, "$"},
		"typed slice":         {[]string{"a"}, canonjson.KindType, "$"},
		"pointer":             {new(int), canonjson.KindType, "$"},
		"NaN":                 {[]any{0.0, math.NaN()}, canonjson.KindNonFinite, "$[1]"},
		"infinity":            {math.Inf(-1), canonjson.KindNonFinite, "$"},
		"integer over":        {int64(canonjson.MaxInt + 1), canonjson.KindIntegerRange, "$"},
		"integer under":       {int64(-canonjson.MaxInt - 1), canonjson.KindIntegerRange, "$"},
		"unsigned over":       {uint64(math.MaxUint64), canonjson.KindIntegerRange, "$"},
		"invalid string":      {[]any{"\xff"}, canonjson.KindInvalidUTF8, "$[0]"},
		"invalid key":         {map[string]any{"\xff": 1}, canonjson.KindInvalidUTF8, `$["\xff"]`},
		"surrogate in string": {"\xed\xa0\x80", canonjson.KindInvalidUTF8, "$"},
		"string too long":     {long, canonjson.KindSizeLimit, "$"},
		"array too long":      {[]any{make([]any, canonjson.MaxEntries+1)}, canonjson.KindSizeLimit, "$[0]"},
		"first key wins":      {map[string]any{"b": "\xff", "a": math.NaN()}, canonjson.KindNonFinite, "$.a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := canonjson.Marshal(tt.in)
			var got *canonjson.Error
			if !errors.As(err, &got) {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(canonjson.Error{Kind: tt.kind, Path: tt.path}, *got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if _, digestErr := canonjson.Digest(tt.in); !errors.Is(digestErr, err) {
				t.Errorf("Digest: %v, want %v", digestErr, err)
			}
		})
	}
	if _, err := canonjson.Marshal(long[2:]); err != nil {
		t.Errorf("string at the limit: %v", err)
	}
	if _, err := canonjson.Marshal(map[string]any{long: 1}); !errors.Is(err, &canonjson.Error{Kind: canonjson.KindSizeLimit}) {
		t.Errorf("key over the limit: %v", err)
	}
}

func TestAppendDepth(t *testing.T) {
	arrays := func(n int, v any) any {
		for range n {
			v = []any{v}
		}
		return v
	}
	loop := make([]any, 1)
	loop[0] = loop
	tests := map[string]struct {
		in    any
		depth int
		fits  bool
	}{
		"scalar at 32":             {arrays(32, 0), 0, true},
		"scalar at 33":             {arrays(33, 0), 0, false},
		"empty array at 32":        {arrays(32, []any{}), 0, true},
		"empty object at 32":       {arrays(32, map[string]any{}), 0, true},
		"key at 32":                {arrays(31, map[string]any{"a": 1}), 0, true},
		"key at 33":                {arrays(32, map[string]any{"a": 1}), 0, false},
		"argument of 30 arrays":    {map[string]any{"a": arrays(30, 0)}, 1, true},
		"argument of 31 arrays":    {map[string]any{"a": arrays(31, 0)}, 1, false},
		"raw at 32":                {canonjson.Raw("0"), 32, true},
		"raw at 33":                {canonjson.Raw("0"), 33, false},
		"array that holds itself":  {loop, 0, false},
		"scalar given at depth 33": {0, 33, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := canonjson.Append(nil, tt.in, tt.depth)
			if tt.fits && err != nil || !tt.fits && !errors.Is(err, &canonjson.Error{Kind: canonjson.KindNesting}) {
				t.Errorf("fits %v, got %v", tt.fits, err)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	const secret = "hunter2"
	tests := map[string]struct{ in, want string }{
		"place":         {`{"items":[{"amount":1e999}]}`, "number is not finite at $.items[0].amount"},
		"whole text":    {"\xff", "invalid UTF-8"},
		"value":         {`{"password":"` + secret + `\ud800"}`, "lone surrogate at $.password"},
		"line feed":     {`{"a\nERROR b":NaN}`, `number is not finite at $["a\nERROR b"]`},
		"direction":     {`{"a` + "\u202e" + `":NaN}`, `number is not finite at $["a\u202e"]`},
		"quote and dot": {`{"a\".b":NaN}`, `number is not finite at $["a\".b"]`},
		"key of 64":     {`{"` + strings.Repeat("k", 64) + `":NaN}`, "number is not finite at $." + strings.Repeat("k", 64)},
		"key of 65":     {`{"` + strings.Repeat("k", 65) + `":NaN}`, `number is not finite at $["` + strings.Repeat("k", 64) + `…"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := canonjson.Parse([]byte(tt.in))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorIs(t *testing.T) {
	_, err := canonjson.Parse([]byte(`{"a":NaN}`))
	tests := map[string]struct {
		target error
		want   bool
	}{
		"kind":          {&canonjson.Error{Kind: canonjson.KindNonFinite}, true},
		"kind and path": {&canonjson.Error{Kind: canonjson.KindNonFinite, Path: "$.a"}, true},
		"other path":    {&canonjson.Error{Kind: canonjson.KindNonFinite, Path: "$.b"}, false},
		"other kind":    {&canonjson.Error{Kind: canonjson.KindSyntax}, false},
		"other type":    {errors.ErrUnsupported, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := errors.Is(err, tt.target); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	got, err := canonjson.Digest([]any{})
	const want = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Digest (-want +got), error %v:\n%s", err, diff)
	}
}

func TestValidText(t *testing.T) {
	for in, want := range map[string]bool{"": true, "é😀\x00": true, "\xff": false, "\xed\xa0\x80": false} {
		if got := canonjson.ValidText(in); got != want {
			t.Errorf("ValidText(%q) = %v, want %v", in, got, want)
		}
	}
}
