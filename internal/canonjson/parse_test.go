package canonjson_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

func nested(n int) string { return strings.Repeat("[", n) + "0" + strings.Repeat("]", n) }

func nestedObjects(n int) string {
	return strings.Repeat(`{"a":`, n) + "0" + strings.Repeat("}", n)
}

func list(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("0,", n), ",") + "]" }

func object(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k` + strconv.Itoa(i) + `":0`)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		in   string
		want any
	}{
		"null":                   {"null", nil},
		"booleans":               {"[true,false]", []any{true, false}},
		"white space":            {" \t\r\n{ \"a\" : [ 1 , 2 ] } ", map[string]any{"a": []any{int64(1), int64(2)}}},
		"empty containers":       {`[{},[],""]`, []any{map[string]any{}, []any{}, ""}},
		"integer":                {"12", int64(12)},
		"integer minus zero":     {"-0", int64(0)},
		"largest integer":        {"9007199254740991", int64(canonjson.MaxInt)},
		"smallest integer":       {"-9007199254740991", int64(-canonjson.MaxInt)},
		"float":                  {"1.0", 1.0},
		"float by exponent":      {"1E2", 100.0},
		"float over integers":    {"9007199254740993.0", 9007199254740992.0},
		"float underflow":        {"1e-400", 0.0},
		"float long exponent":    {"1e-99999999999999999999", 0.0},
		"float zero exponent":    {"0e99999999999999999999", 0.0},
		"short escapes":          {`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		"unicode escapes":        {`"\u0041\u00e9\u20AC"`, "Aé€"},
		"surrogate pair":         {`"\ud83d\uDE00!"`, "😀!"},
		"noncharacter":           {`"\uffff\ufffd"`, "\uffff\ufffd"},
		"escaped NUL":            {`"\u0000"`, "\x00"},
		"no normalisation":       {`["é","e\u0301"]`, []any{"é", "e\u0301"}},
		"keys after unescaping":  {`{"\u0061":1,"\u0041":2}`, map[string]any{"a": int64(1), "A": int64(2)}},
		"same key, other object": {`{"a":{"a":1}}`, map[string]any{"a": map[string]any{"a": int64(1)}}},
		"brackets in a string":   {`"\"` + strings.Repeat("[", 40) + `"`, `"` + strings.Repeat("[", 40)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := canonjson.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	const (
		syntax    = canonjson.KindSyntax
		nonFinite = canonjson.KindNonFinite
		intRange  = canonjson.KindIntegerRange
		surrogate = canonjson.KindSurrogate
		duplicate = canonjson.KindDuplicateKey
		utf8Kind  = canonjson.KindInvalidUTF8
	)
	tests := map[string]struct {
		in   string
		kind canonjson.Kind
		path string
	}{
		"empty":                  {"", syntax, "$"},
		"byte-order mark":        {"\ufeff{}", syntax, "$"},
		"two documents":          {"{}{}", syntax, "$"},
		"trailing NUL":           {"1\x00", syntax, "$"},
		"word cut":               {"[1,nul]", syntax, "$[1]"},
		"word too long":          {"nulls", syntax, "$"},
		"comment":                {"[/**/]", syntax, "$[0]"},
		"no-break space":         {"\u00a01", syntax, "$"},
		"comma at the end":       {`{"a":1,}`, syntax, "$"},
		"comma missing":          {`{"a":[1 2]}`, syntax, "$.a"},
		"colon missing":          {`{"a" 1}`, syntax, "$.a"},
		"key without quotes":     {`{a:1}`, syntax, "$"},
		"open object":            {`{"a":1`, syntax, "$"},
		"open array":             {`[1,`, syntax, "$[1]"},
		"open string":            {`"a`, syntax, "$"},
		"open escape":            {`"\`, syntax, "$"},
		"raw line feed":          {"\"a\nb\"", syntax, "$"},
		"unknown escape":         {`"\x41"`, syntax, "$"},
		"escape cut":             {`"\u12"`, syntax, "$"},
		"escape not hex":         {`"\u00g0"`, syntax, "$"},
		"leading zero":           {"-01", syntax, "$"},
		"plus sign":              {"+1", syntax, "$"},
		"sign alone":             {"-", syntax, "$"},
		"point without digits":   {"1.e3", syntax, "$"},
		"exponent without digit": {"1e+", syntax, "$"},
		"NaN":                    {`{"a":NaN}`, nonFinite, "$.a"},
		"infinity":               {"Infinity", nonFinite, "$"},
		"minus infinity":         {"[-Infinity]", nonFinite, "$[0]"},
		"overflow":               {"1e400", nonFinite, "$"},
		"overflow far":           {"-1e99999999999999999999", nonFinite, "$"},
		"integer over":           {"9007199254740992", intRange, "$"},
		"integer under":          {"-9007199254740992", intRange, "$"},
		"integer of 5000 digits": {"[" + strings.Repeat("1", 5000) + "]", intRange, "$[0]"},
		"high surrogate":         {`{"a":"\ud83d"}`, surrogate, "$.a"},
		"low surrogate":          {`"\ude00"`, surrogate, "$"},
		"surrogates reversed":    {`"\ude00\ud83d"`, surrogate, "$"},
		"surrogate, then letter": {`"\ud83d\u0041"`, surrogate, "$"},
		"surrogate, then escape": {`"\ud83d\n"`, surrogate, "$"},
		"surrogate in key":       {`{"\ud800":1}`, surrogate, "$"},
		"broken half of a pair":  {`"\ud83d\u12"`, syntax, "$"},
		"repeated key":           {`{"a":1,"a":1}`, duplicate, "$.a"},
		"repeated escaped key":   {`[{"b":{"a":1,"\u0061":2}}]`, duplicate, "$[0].b.a"},
		"repeated empty key":     {`{"":1,"":2}`, duplicate, `$[""]`},
		"invalid byte":           {"\"\xff\"", utf8Kind, ""},
		"encoded surrogate":      {"\"\xed\xa0\x80\"", utf8Kind, ""},
		"overlong encoding":      {"\"\xc0\x80\"", utf8Kind, ""},
		"invalid byte at 33":     {strings.Repeat("[", 33) + "\xff", utf8Kind, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			checkError(t, tt.in, &canonjson.Error{Kind: tt.kind, Path: tt.path})
		})
	}
}

func checkError(t *testing.T, in string, want *canonjson.Error) {
	t.Helper()
	v, err := canonjson.Parse([]byte(in))
	var got *canonjson.Error
	if !errors.As(err, &got) {
		t.Fatalf("accepted as %v, want %v", v, want)
	}
	if diff := cmp.Diff(*want, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestParseLimits(t *testing.T) {
	exact := `"` + strings.Repeat("a", canonjson.MaxBytes-2) + `"`
	tests := map[string]struct {
		fits, over string
		kind       canonjson.Kind
		path       string
	}{
		"bytes":          {exact, exact + " ", canonjson.KindTooLarge, ""},
		"arrays":         {nested(32), nested(33), canonjson.KindNesting, ""},
		"objects":        {nestedObjects(32), nestedObjects(33), canonjson.KindNesting, ""},
		"hostile stack":  {nested(32), strings.Repeat("[", canonjson.MaxBytes), canonjson.KindNesting, ""},
		"side by side":   {"[" + nested(31) + "," + nested(31) + "]", "[" + nested(32) + "]", canonjson.KindNesting, ""},
		"array entries":  {list(1024), list(1025), canonjson.KindSizeLimit, "$"},
		"object entries": {object(1024), object(1025), canonjson.KindSizeLimit, "$"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := canonjson.Canonicalize([]byte(tt.fits)); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			checkError(t, tt.over, &canonjson.Error{Kind: tt.kind, Path: tt.path})
		})
	}
}

// Each of these is read wrongly by strconv alone.
func TestParseLongFloats(t *testing.T) {
	zeros := strings.Repeat("0", 60000)
	tests := map[string]struct {
		in   string
		want float64
	}{
		"many digits before the point": {"9007199254740993" + strings.Repeat("0", 900) + "1e-901", 9007199254740994},
		"long exponent, zeros before":  {"0." + zeros + "1e60001", 1},
		"long exponent, zeros after":   {"-1" + zeros + ".0e-0060000", -1},
		"negative zero":                {"-0." + zeros + "e123456", math.Copysign(0, -1)},
		"vanishes":                     {"1" + zeros + "e-100000", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := canonjson.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			f, ok := got.(float64)
			if !ok || math.Float64bits(f) != math.Float64bits(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	checkError(t, "0."+zeros+"1e100000", &canonjson.Error{Kind: canonjson.KindNonFinite, Path: "$"})
}

func TestParseCanonical(t *testing.T) {
	tests := map[string]struct {
		in   string
		kind canonjson.Kind
	}{
		"canonical":   {`{"a":1.0,"b":[]}`, ""},
		"white space": {`{"a": 1}`, canonjson.KindNotCanonical},
		"key order":   {`{"b":1,"a":2}`, canonjson.KindNotCanonical},
		"minus zero":  {`-0`, canonjson.KindNotCanonical},
		"escape":      {`"\/"`, canonjson.KindNotCanonical},
		"invalid":     {`{`, canonjson.KindSyntax},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := canonjson.ParseCanonical(tt.in)
			var got canonjson.Kind
			if e := new(canonjson.Error); errors.As(err, &e) {
				got = e.Kind
			}
			if diff := cmp.Diff(tt.kind, got); diff != "" {
				t.Errorf("kind (-want +got):\n%s", diff)
			}
			if canonjson.IsCanonical(tt.in) != (err == nil) {
				t.Error("IsCanonical disagrees with ParseCanonical")
			}
		})
	}
}
