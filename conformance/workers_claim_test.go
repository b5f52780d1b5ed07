package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestWorkDamaged: operations that were changed past the runtime are not claimed,
// and what is claimed together with them goes on.
func TestWorkDamaged(t *testing.T) {
	damages := []string{
		"UPDATE outbox SET payload_json = '{}' WHERE operation_pk = 1",
		"UPDATE outbox SET attempt_count = attempt_count + 1 WHERE operation_pk = 2",
		"UPDATE operations SET approver_id = 'mallory' WHERE operation_pk = 3",
		fmt.Sprintf("UPDATE operations SET created_at = %d, updated_at = %[1]d WHERE operation_pk = 4", start+day),
	}
	const good = 20
	forEachEngine(t, func(t *testing.T, e engine) {
		var mu sync.Mutex
		effects := map[string]int{}
		d := newDesk(t, e, withAuthorizer(anybody), withTools(countingNote("note", &mu, effects)))
		var refs []string
		for i := range len(damages) + good {
			refs = append(refs, d.submit(noteCall(fmt.Sprint("key-", i))))
		}
		for _, damage := range damages {
			d.mustSQL(damage)
		}
		stop := d.work(toolruntime.WorkOptions{Concurrency: 8})
		for _, ref := range refs[len(damages):] {
			d.await(ref)
		}
		stop()
		for i, ref := range refs {
			h, err := d.History(context.Background(), ref)
			if err != nil {
				t.Fatal(err)
			}
			want, ran := toolruntime.StateSucceeded, 1
			if i < len(damages) {
				want, ran = toolruntime.StatePending, 0
			}
			if got := effects[fmt.Sprint("key-", i)]; h.State != want || got != ran {
				t.Errorf("operation %d is %s after %d effects, want %s after %d", i+1, h.State, got, want, ran)
			}
		}
	})
}
