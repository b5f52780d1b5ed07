package canonjson_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/canonjson"
)

func FuzzParse(f *testing.F) {
	for _, v := range readVectors(f) {
		f.Add(v.Input)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := canonjson.Canonicalize(data)
		if !json.Valid(data) {
			if err == nil {
				t.Fatalf("accepted what encoding/json rejects: %q", data)
			}
			return
		}
		if err != nil {
			return
		}
		var want, got any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted what encoding/json cannot decode: %v", err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("canonical form %q: %v", text, err)
		}
		// Not cmp.Diff, whose time doubles with every level of nested slices.
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("the canonical form of %q changed the value: %q", data, text)
		}
		if len(text) > canonjson.MaxBytes {
			return
		}
		again, err := canonjson.Canonicalize(text)
		if diff := cmp.Diff(string(text), string(again)); diff != "" || err != nil {
			t.Fatalf("canonical form of the canonical form (-want +got), error %v:\n%s", err, diff)
		}
	})
}

func FuzzFloat(f *testing.F) {
	for _, x := range []float64{0, 1, 0.1, 1e15, 1e16, 1e17, 1e-4, 1e-5, 1e22, 1e23, 5e-324, math.MaxFloat64} {
		for _, y := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.MaxFloat64), -x} {
			f.Add(math.Float64bits(y))
		}
	}
	f.Fuzz(func(t *testing.T, bits uint64) { checkFloat(t, math.Float64frombits(bits)) })
}

func TestFloatForm(t *testing.T) {
	const seed1, seed2 = 20, 26
	rnd := rand.New(rand.NewPCG(seed1, seed2))
	for range 5_000 {
		checkFloat(t, math.Float64frombits(rnd.Uint64()))
		// Random bits are rarely near the bounds of plain notation, and rarely round.
		checkFloat(t, math.Round(rnd.Float64()*1000)*math.Pow10(rnd.IntN(30)-12))
	}
}

func checkFloat(t *testing.T, f float64) {
	t.Helper()
	got, err := canonjson.Marshal(f)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		if err == nil {
			t.Fatalf("accepted %v", f)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slowFloat(f), string(got)); diff != "" {
		t.Fatalf("%x (-want +got):\n%s", math.Float64bits(f), diff)
	}
	back, err := canonjson.Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := back.(float64); !ok || math.Float64bits(b) != math.Float64bits(f) {
		t.Fatalf("%s reads back as %v", got, back)
	}
}

// slowFloat lays out digits and decimal exponent by the words of the contract.
// It tries one precision after the other until the digits read back.
func slowFloat(f float64) string {
	sign := ""
	if math.Signbit(f) {
		sign, f = "-", -f
	}
	if f == 0 {
		return sign + "0.0"
	}
	var digits string
	var exp int
	for precision := 1; ; precision++ {
		text := new(big.Float).SetFloat64(f).Text('e', precision-1)
		mantissa, exponent, _ := strings.Cut(text, "e")
		digits = strings.Replace(mantissa, ".", "", 1)
		exp, _ = strconv.Atoi(exponent)
		if back, _ := strconv.ParseFloat(text, 64); back == f {
			break
		}
	}
	if exp < -4 || exp >= 16 {
		mark, size := "+", exp
		if exp < 0 {
			mark, size = "-", -exp
		}
		out := sign + digits[:1]
		if len(digits) > 1 {
			out += "." + digits[1:]
		}
		if size < 10 {
			mark += "0"
		}
		return out + "e" + mark + strconv.Itoa(size)
	}
	if exp < 0 {
		return sign + "0." + strings.Repeat("0", -exp-1) + digits
	}
	if missing := exp + 2 - len(digits); missing > 0 {
		digits += strings.Repeat("0", missing)
	}
	return sign + digits[:exp+1] + "." + digits[exp+1:]
}
