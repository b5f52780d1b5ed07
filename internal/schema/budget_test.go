package schema

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBudgetIsTime grows a value until the budget refuses it, and measures the
// validator on the last one that it did not refuse.
func TestBudgetIsTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	items := func(x any) func(n int) any {
		return func(n int) any { return a(list(n, func(int) any { return x })) }
	}
	names := func(n int) any {
		obj := make(map[string]any, n)
		for i := range n {
			obj[strconv.Itoa(i)] = nil
		}
		return a(obj)
	}
	text := func(n int) any { return a(strings.Repeat("x", n)) }
	nth := func(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, i) } }
	constant := func(s string) func(int) string { return func(int) string { return s } }
	tests := []struct {
		name, schema string
		value        func(n int) any
	}{
		{"enum of integers", field(`{"items":{"enum":[` + repeat(6000, nth("%d")) + `]}}`), items(int64(-1))},
		{"enum of tiny floats", field(`{"items":{"enum":[` + repeat(3000, nth("%de-300")) + `]}}`), items(1e300)},
		{"anyOf", field(`{"items":{"anyOf":[` + repeat(1000, nth(`{"const":%d}`)) + `]}}`), items(int64(-1))},
		{"multipleOf", field(`{"items":{"multipleOf":1.23e-300,"minimum":1e-300}}`), items(1e300)},
		{"required", field(`{"items":{"required":[` + repeat(5000, nth(`"%d"`)) + `]}}`), items(map[string]any{})},
		{"pattern", field(`{"pattern":"(x+x+){150}y"}`), text},
		{"pattern with any", field(`{"pattern":"(.?){190}y"}`), text},
		{"lengths", field(`{"allOf":[` + repeat(1500, constant(`{"minLength":9}`)) + `]}`), text},
		{"unevaluatedProperties", field(`{"unevaluatedProperties":false,"allOf":[` + repeat(1000, constant(`{"minProperties":1}`)) + `]}`), names},
		{"propertyNames", field(`{"propertyNames":{"allOf":[` + repeat(1000, constant(`{"minLength":9}`)) + `]}}`), names},
		{"uniqueItems", field(`{"uniqueItems":true}`), func(n int) any {
			return a(list(min(n, 4096), func(i int) any { return shape(uint(i), 12) }))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustCompile(t, tt.schema)
			n := sort.Search(60_000, func(n int) bool { return s.costs.check(tt.value(n)) != "" }) - 1
			v := tt.value(n)
			start := time.Now()
			found := s.violations(s.input, v)
			d := time.Since(start)
			t.Logf("size %d in %v, %d violations", n, d, len(found))
			if d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}
