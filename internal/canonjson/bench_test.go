package canonjson_test

import (
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

const typical = `{"order_ref":"ORDER-7","reason":"duplicate"}`

func BenchmarkCanonicalizeTypical(b *testing.B) {
	in := []byte(typical)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := canonjson.Canonicalize(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	v, err := canonjson.Parse([]byte(typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonjson.Digest(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonicalizeLarge(b *testing.B) {
	in := largeDocument()
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := canonjson.Canonicalize(in); err != nil {
			b.Fatal(err)
		}
	}
}

// largeDocument is near the size limit and mixes every type.
func largeDocument() []byte {
	doc := []byte{'['}
	for len(doc) < canonjson.MaxBytes-200 {
		doc = append(doc, `{"order_ref":"ORDER-7","amount":12.5,"items":[1,20,true,null],"note":"zur\u00fcck\n"},`...)
	}
	return append(doc, `0]`...)
}
