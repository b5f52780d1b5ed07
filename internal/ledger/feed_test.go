package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFeed plays a server whose transactions take keys and commit in any order, or never,
// and listeners that are killed at any moment and go on from their cursor: whatever is
// committed is told, and a cursor never passes what may still come.
func TestFeed(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			type transaction struct {
				name string
				key  int64
			}
			var running []transaction // that have their key
			var starting []string     // that have locked the table and have no key yet
			var committed, told []int64
			next, names := int64(1), 0
			f := &Feed{}
			cursor := f.Cursor()
			writers := func() (all []string) {
				for _, tx := range running {
					all = append(all, tx.name)
				}
				return append(all, starting...)
			}
			step := func(draining bool) {
				switch n := r.IntN(6); {
				case n == 0 && !draining:
					names++
					starting = append(starting, fmt.Sprint(names))
				case n < 3 && len(starting) > 0:
					running = append(running, transaction{starting[0], next})
					starting = starting[1:]
					next++
				case n < 5 && len(running) > 0:
					i := r.IntN(len(running))
					if r.IntN(4) > 0 {
						committed = append(committed, running[i].key)
					}
					running = slices.Delete(running, i, i+1)
				}
			}
			look := func() {
				t := &f.receipts
				var asked []string
				if len(t.gaps) > 0 {
					asked = writers()
				}
				for range r.IntN(3) { // between the question and the snapshot
					step(false)
				}
				slices.Sort(committed)
				var rows []End
				for _, key := range committed {
					within := key > t.head
					for _, g := range t.ranges() {
						within = within || key >= g.from && key <= g.to
					}
					if within {
						rows = append(rows, End{on: t, key: key, StatusRef: fmt.Sprint(key), State: Succeeded, receipt: true})
					}
				}
				for _, e := range t.read(rows, asked) {
					f.Tell(e)
					told = append(told, e.key)
					if cursor = f.Cursor(); r.IntN(20) == 0 { // killed; it goes on from its cursor
						f, _ = feedAt(cursor)
						return
					}
				}
			}
			for range 400 {
				step(false)
				if r.IntN(3) == 0 {
					look()
				}
				if place, err := feedAt(cursor); err != nil {
					t.Fatal(err)
				} else {
					for _, key := range committed {
						if key <= place.receipts.told && !slices.Contains(told, key) {
							t.Fatalf("the cursor has passed %d, which was not told", key)
						}
					}
					for _, tx := range running {
						if tx.key <= place.receipts.told {
							t.Fatalf("the cursor has passed %d, which may still come", tx.key)
						}
					}
				}
			}
			for len(running)+len(starting) > 0 {
				step(true)
			}
			for range 8 {
				look()
			}
			for range 4 {
				f, _ = feedAt(cursor)
				look()
			}
			slices.Sort(told)
			if got := slices.Compact(slices.Clone(told)); !slices.Equal(got, committed) {
				t.Errorf("told %v of %v", got, committed)
			}
		})
	}
}
