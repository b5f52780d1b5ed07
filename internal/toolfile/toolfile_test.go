package toolfile_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/toolfile"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// TestParse: what is wrong is said with its place and without its value.
func TestParse(t *testing.T) {
	tool := func(more string) string {
		return `{"schema_version":"toolruntime-tools-v1","tools":[{"name":"pay","input_schema":{},"output_schema":{}` + more + `}]}`
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "is no JSON: at byte 0"},
		{"cut off", tool("")[:60], "is no JSON: at byte 60"},
		{"no object", "[]", "is not a toolruntime-tools-v1"},
		{"another format", `{"schema_version":"secret"}`, "schema_version must be toolruntime-tools-v1"},
		{"a name that is not ours", tool(`,"naem":"secret"`), "/tools/0/naem is not a member of a toolruntime-tools-v1, or has another type there"},
		{"another type", tool(`,"max_output_bytes":"secret"`), "/tools/0/max_output_bytes is not a member of a toolruntime-tools-v1, or has another type there"},
		{"a name in other letters", tool(`,"Risk":"read"`), "/tools/0/Risk is not a member of a toolruntime-tools-v1, or has another type there"},
		{"a name twice", tool(`,"name":"secret"`), "/tools/0/name: is there twice"},
		{"a schema's name twice", tool(`,"versions":[{"name":"pay","input_schema":{"a":1,"a":2},"output_schema":{}}]`), "/tools/0/versions/0/input_schema/a: is there twice"},
		{"no duration", tool(`,"timeout":"secret"`), "/tools/0/timeout is not a member of a toolruntime-tools-v1, or has another type there"},
		{"no schema", `{"schema_version":"toolruntime-tools-v1","tools":[{"name":"pay"}]}`, "each of the tools needs name, input_schema and output_schema"},
		{"a version without a name", tool(`,"versions":[{"input_schema":{},"output_schema":{}}]`), "each of the tools needs name, input_schema and output_schema"},
		{"a version of a version", tool(`,"versions":[{"name":"pay","versions":[]}]`), "/tools/0/versions/0/versions is not a member of a toolruntime-tools-v1, or has another type there"},
		{"too large", strings.Repeat(" ", toolfile.MaxBytes+1), "is larger than 67108864 bytes"},
	} {
		f, err := toolfile.Parse([]byte(tt.text))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %+v, %v; want %s", tt.name, f, err, tt.want)
		}
	}
}

// TestBytes: what is written is read as it was, whatever white space a file has.
func TestBytes(t *testing.T) {
	schema := json.RawMessage(`{"description":"` + strings.Repeat("x", 60_000) + `","enum":[1.0,1,"\u0000<é"]}`)
	c := toolfile.Contract{Name: "pay", Risk: "write", Effect: "queryable",
		Revisions: toolresult.Revisions{InputSchema: "i", OutputSchema: "o", Effect: "e", Handler: "h", Producer: "p", Policy: "y"},
		Source:    "bank", InputSchema: schema, OutputSchema: json.RawMessage(`{}`), Equal: map[string]string{"a": "b"},
		MaxOutputBytes: 1, MaxOutputDepth: 2, Timeout: toolfile.Duration(800 * time.Millisecond), KeyMemory: math.MaxInt64}
	old := c
	old.Timeout, old.KeyMemory = 1, toolfile.Duration(24*time.Hour)
	f := &toolfile.File{SchemaVersion: toolfile.Version, Profiles: []toolfile.Profile{{"a", "b", "c"}},
		Tools: []toolfile.Tool{{Contract: c, Versions: []toolfile.Contract{old}}}}
	text, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	got, err := toolfile.Parse(text)
	if diff := cmp.Diff(f, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, want := range []string{`"timeout": "800ms"`, `"key_memory": "forever"`, `"key_memory": "24h0m0s"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in %.2000s", want, text)
		}
	}
}

// TestBytesTooLarge: what nobody could read is not written.
func TestBytesTooLarge(t *testing.T) {
	big := json.RawMessage(`"` + strings.Repeat("x", toolfile.MaxBytes) + `"`)
	f := &toolfile.File{Tools: []toolfile.Tool{{Contract: toolfile.Contract{InputSchema: big, OutputSchema: json.RawMessage("{}")}}}}
	var input *toolresult.InputError
	if text, err := f.Bytes(); !errors.As(err, &input) || text != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
