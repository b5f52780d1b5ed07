package canonjson_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

type vector struct {
	ID        string         `json:"id"`
	Input     []byte         `json:"input_base64"`
	Accept    bool           `json:"accept"`
	Canonical *string        `json:"canonical"` // left out when long
	SHA256    string         `json:"sha256"`
	Reject    canonjson.Kind `json:"reject"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	dir := os.Getenv("TOOLRUNTIME_VECTORS")
	if dir == "" {
		dir = "testdata"
	}
	file, err := os.Open(filepath.Join(dir, "canonical.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var vectors []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4*canonjson.MaxBytes)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	return vectors
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			got, err := canonjson.Canonicalize(v.Input)
			if !v.Accept {
				checkReject(t, v, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v.Canonical != nil {
				if diff := cmp.Diff(*v.Canonical, string(got)); diff != "" {
					t.Errorf("canonical form (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(v.SHA256, canonjson.Sum(got)); diff != "" {
				t.Errorf("digest (-want +got):\n%s", diff)
			}
			// The canonical form can be over the limit that its source was under.
			if len(got) <= canonjson.MaxBytes && !canonjson.IsCanonical(string(got)) {
				t.Error("the canonical form is not canonical")
			}
			if canonjson.IsCanonical(string(v.Input)) != bytes.Equal(v.Input, got) {
				t.Error("IsCanonical disagrees with the canonical form")
			}
		})
	}
}

func checkReject(t *testing.T, v vector, err error) {
	t.Helper()
	var got *canonjson.Error
	if !errors.As(err, &got) {
		t.Fatalf("accepted, want %s", v.Reject)
	}
	// Of several broken rules any is a fair answer. Syntax is the one that a
	// single flipped byte brings along, and the one with another judge.
	if v.Reject == canonjson.KindSyntax && !json.Valid(v.Input) {
		return
	}
	if diff := cmp.Diff(v.Reject, got.Kind); diff != "" {
		t.Errorf("kind (-want +got):\n%s", diff)
	}
}
