package conformance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestSizes: what a call, another identity of it and a tombstone take in the database is
// what docs/sizing.md says.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills ledgers")
	}
	page, err := os.ReadFile("../docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	// said is a number of the page: the first group of the pattern.
	said := func(pattern string) float64 {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(strings.Join(strings.Fields(string(page)), " "))
		if m == nil {
			t.Fatalf("docs/sizing.md does not say %s", pattern)
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const calls = 2000
	key := func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(strconv.Itoa(i))))[:32] }
	forEachEngine(t, func(t *testing.T, e engine) {
		d := newDesk(t, e)
		size := func() (n float64) {
			query := `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname = current_schema AND c.relkind = 'r'`
			if e.name == "sqlite" {
				query = `SELECT ((SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)) * (SELECT * FROM pragma_page_size)`
			}
			d.scan(query, &n)
			return n
		}
		each := func(do func(i int)) float64 {
			before, numbers := size(), make(chan int)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for i := range numbers {
						do(i)
					}
				})
			}
			for i := range calls {
				numbers <- i
			}
			close(numbers)
			wg.Wait()
			return (size() - before) / calls
		}
		about := func(what string, got, least, most float64) {
			t.Helper()
			t.Logf("%s: %.0f bytes", what, got)
			if got < least || got > most {
				t.Errorf("%s: %.0f bytes, not from %.0f to %.0f", what, got, least, most)
			}
		}
		empty := size()
		call := each(func(i int) { d.send(user("user-1"), refundCall(key(i)), "") })
		row := map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL"}[e.name]
		want := said(`\| ` + row + ` \| ([0-9,]+)`)
		about("a call", call, 0.85*want, 1.15*want)
		identity := each(func(i int) {
			c := refundCall(key(i))
			c.CallID = "call-again-" + key(i)
			d.repeat(c)
		})
		want = said(map[string]string{"sqlite": `some ([0-9]+) bytes on SQLite, `, "postgres": `bytes on SQLite, ([0-9]+) on PostgreSQL`}[e.name])
		about("another identity", identity, 0.8*want, 1.2*want)
		if e.name == "sqlite" { // PostgreSQL keeps the room of what was removed until VACUUM FULL
			d.setTime(d.time() + int64(48*time.Hour/time.Second))
			if _, err := d.Prune(context.Background(), &toolruntime.PruneOptions{OlderThan: time.Hour}); err != nil {
				t.Fatal(err)
			}
			d.mustSQL("VACUUM")
			about("a tombstone", (size()-empty)/calls, call/10, call/6)
		}
	})
}
