package scenario

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// removed as a new value takes the entry out.
type removed struct{}

// edited returns the document with the value at a path such as "cases.0.id"
// replaced. The path "" is the root.
func edited(t testing.TB, data []byte, path string, value any) []byte {
	t.Helper()
	tree, err := canonjson.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	if path != "" {
		keys = strings.Split(path, ".")
	}
	text, err := canonjson.Marshal(replace(t, tree, keys, value))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func replace(t testing.TB, tree any, keys []string, value any) any {
	t.Helper()
	if len(keys) == 0 {
		return value
	}
	switch tree := tree.(type) {
	case map[string]any:
		tree = maps.Clone(tree)
		if _, ok := value.(removed); ok && len(keys) == 1 {
			delete(tree, keys[0])
			return tree
		}
		tree[keys[0]] = replace(t, tree[keys[0]], keys[1:], value)
		return tree
	case []any:
		i, err := strconv.Atoi(keys[0])
		if err != nil || i >= len(tree) {
			t.Fatalf("no entry %q", keys[0])
		}
		tree = slices.Clone(tree)
		tree[i] = replace(t, tree[i], keys[1:], value)
		return tree
	}
	t.Fatalf("no place for %q", keys)
	return nil
}

// problemsOf returns the problems of a fixture error, and fails on any other
// outcome.
func problemsOf(t testing.TB, err error) []string {
	t.Helper()
	var fixture *FixtureError
	if !errors.As(err, &fixture) || !errors.Is(err, ErrFixture) || len(fixture.Problems) == 0 {
		t.Fatalf("got %v, want a FixtureError with problems", err)
	}
	return fixture.Problems
}

// A rejection is a change of a good file and the one problem that it makes.
type rejection struct {
	path  string
	value any
	want  string
}

func (r rejection) name() string { return r.path + " " + r.want }

// documentTests are the refusals of the strict reader, for either kind of file.
func documentTests(t *testing.T, good []byte, read func([]byte) error) {
	t.Helper()
	text := string(good)
	for _, tt := range []struct {
		name string
		data string
		kind canonjson.Kind
		want string
	}{
		{"duplicate key", `{"schema_version":"a","schema_version":"b"}`, canonjson.KindDuplicateKey, "repeated object key"},
		{"not finite", `{"value":NaN}`, canonjson.KindNonFinite, "not finite"},
		{"invalid UTF-8", "\xff", canonjson.KindInvalidUTF8, "invalid UTF-8"},
		{"byte-order mark", "\ufeff" + text, canonjson.KindSyntax, "syntax"},
		{"too large", text + strings.Repeat(" ", canonjson.MaxBytes), canonjson.KindTooLarge, "too large"},
		{"nesting", strings.Repeat("[", 10_000), canonjson.KindNesting, "nesting"},
		{"integer range", `{"now":9007199254740992}`, canonjson.KindIntegerRange, "integer out of range"},
		{"lone surrogate", `{"a":"\ud800"}`, canonjson.KindSurrogate, "surrogate"},
		{"empty", "", canonjson.KindSyntax, "syntax"},
		{"two documents", text + text, canonjson.KindSyntax, "syntax"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := read([]byte(tt.data))
			problems := problemsOf(t, err)
			if len(problems) != 1 || !strings.Contains(problems[0], tt.want) || !strings.HasPrefix(problems[0], "file: ") {
				t.Errorf("got %q, want one problem of the file with %q", problems, tt.want)
			}
			if !errors.Is(err, &canonjson.Error{Kind: tt.kind}) {
				t.Errorf("%v does not match kind %s", err, tt.kind)
			}
		})
	}
}

func rejectionTests(t *testing.T, good []byte, read func([]byte) error, table []rejection) {
	t.Helper()
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for _, tt := range table {
		t.Run(tt.name(), func(t *testing.T) {
			problems := problemsOf(t, read(edited(t, good, tt.path, tt.value)))
			if !slices.Equal(problems, []string{tt.want}) {
				t.Errorf("got %q, want only %q", problems, tt.want)
			}
		})
	}
}

// TestFixtureErrorIsBounded holds the error's text, not its problems.
func TestFixtureErrorIsBounded(t *testing.T) {
	data := edited(t, readFile(t, "refunds.cases.json"), "cases", slices.Repeat([]any{int64(1)}, 200))
	_, err := ReadSet(data)
	if got := len(problemsOf(t, err)); got != 200 {
		t.Errorf("got %d problems, want 200", got)
	}
	if text := err.Error(); !strings.HasSuffix(text, "; and 180 more") || len(text) > 2000 {
		t.Errorf("unexpected text: %s", text)
	}
}

// TestErrorsHoldNoValue plants a value in every place of the files.
func TestErrorsHoldNoValue(t *testing.T) {
	const secret = "S3CRET-VALUE"
	for name, read := range map[string]func([]byte) error{
		"refund.case.json":   func(b []byte) error { _, err := ReadCase(b); return err },
		"refunds.cases.json": func(b []byte) error { _, err := ReadSet(b); return err },
	} {
		good := readFile(t, name)
		tree, err := canonjson.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths(tree, "") {
			if strings.HasPrefix(path, "cases.1") {
				break
			}
			for _, value := range []any{secret, map[string]any{secret: secret}, []any{secret}, strings.Repeat(secret, 300)} {
				if err := read(edited(t, good, path, value)); err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s: %s: %v", name, path, err)
				}
			}
		}
	}
}

// paths lists every place below the root.
func paths(tree any, prefix string) []string {
	var list []string
	walk := func(key string, v any) {
		list = append(list, prefix+key)
		list = append(list, paths(v, prefix+key+".")...)
	}
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			walk(key, tree[key])
		}
	case []any:
		for i, v := range tree {
			walk(strconv.Itoa(i), v)
		}
	}
	return list
}
