package conformance

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// TestCompletionsLate: a transaction that has taken its keys, and commits only after
// others with larger keys were told of, is told of all the same, by a listener that stays
// and by one that was killed and goes on from any cursor. It is PostgreSQL's alone: on
// SQLite nobody else can commit meanwhile.
func TestCompletionsLate(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	p := user("user-1")
	lost := noteTool("lost_note", toolruntime.Once, func(context.Context, toolruntime.Effect, noteArgs) (toolruntime.Receipt[note], error) {
		return toolruntime.Receipt[note]{}, errLost
	})
	d := newDesk(t, postgres, func(_ *desk, _ *toolruntime.Options, tools *[]toolruntime.Registration) {
		*tools = append(*tools, lost)
	})
	listener := d.another(withTools())
	reviewed := func(key string) string {
		c := callOf("lost_note", key, `{"text":"hello"}`)
		d.carryOut(p, c)
		return d.bind(p, c).StatusRef()
	}
	done := func(key string) string {
		d.carryOut(p, refundCall(key))
		return d.bind(p, refundCall(key)).StatusRef()
	}
	failing, succeeding := refundCall("failing"), refundCall("succeeding")
	refs := []string{d.submit(failing), d.submit(succeeding)}
	want := []string{reviewed("first-review"), done("first")}

	db := postgres.plain(t, d.address)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, statement := range []string{
		`UPDATE operations SET state = 'failed', reason = 'TOOL_ERROR', completed_at = updated_at WHERE status_ref = '` + refs[0] + `'`,
		`INSERT INTO endings (status_ref) VALUES ('` + refs[0] + `')`,
		`INSERT INTO downstream_receipts (tenant_id, subject_id, tool_name, idempotency_key, request_sha256, receipt_id, downstream_request_id,
			result_json, producer_revision, resource_revision, observed_at, effect_revision, committed_at)
			SELECT tenant_id, subject_id, tool_name, idempotency_key, request_sha256, 'late', 'late', '{}', 'p', 'r', '2026-07-19T00:00:00Z', effect_revision, 0
			FROM operations WHERE status_ref = '` + refs[1] + `'`,
		`UPDATE operations SET state = 'succeeded', completed_at = updated_at WHERE status_ref = '` + refs[1] + `'`,
	} {
		if _, err := tx.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	// Keys that nobody will be seen with.
	other, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(`INSERT INTO endings (status_ref) VALUES ('rolled back')`); err != nil {
		t.Fatal(err)
	}
	want = append(want, reviewed("second-review"), done("second"))
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	want = append(want, reviewed("third-review"), done("third"))

	// A listener hears all but what is late, and is killed after each of them.
	var told []string
	cursors := []toolruntime.Cursor{""}
	for c, err := range listener.Completions(ctx, "", &toolruntime.CompletionOptions{UntilNow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		told, cursors = append(told, c.StatusRef), append(cursors, c.Cursor)
	}
	wantEqual(t, "before", sorted(want), sorted(told))
	// Another one stays, and knows the late one before it commits.
	staying := make(chan []string, 1)
	heardAll := make(chan struct{})
	go func() {
		var told []string
		for c, err := range listener.Completions(ctx, "", &toolruntime.CompletionOptions{Poll: time.Millisecond}) {
			if err != nil {
				t.Error(err)
				break
			}
			if told = append(told, c.StatusRef); len(told) == len(want) {
				close(heardAll)
			}
			if len(told) == len(want)+2 {
				break
			}
		}
		staying <- told
	}()
	<-heardAll
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the one that stays", sorted(append(want, refs...)), sorted(<-staying))
	for i, cursor := range cursors {
		heard := slices.Clone(told[:i])
		for c, err := range listener.Completions(ctx, cursor, &toolruntime.CompletionOptions{UntilNow: true}) {
			if err != nil {
				t.Fatal(err)
			}
			heard = append(heard, c.StatusRef)
		}
		wantEqual(t, "killed and begun again", sorted(append(want, refs...)), slices.Compact(sorted(heard)))
	}
}

func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}

// TestCompletionsOfOthers: what another process's runtime ends is heard of, in its order,
// by listeners with cursors of their own.
func TestCompletionsOfOthers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		p, d := user("user-1"), newDesk(t, e)
		one, two := d.another(withTools()), d.another(withTools())
		var want []string
		for _, key := range []string{"a", "b", "c"} {
			d.carryOut(p, refundCall(key))
			want = append(want, d.bind(p, refundCall(key)).StatusRef())
		}
		for _, listener := range []*desk{one, two} {
			var told []string
			for c, err := range listener.Completions(ctx, "", nil) {
				if err != nil {
					t.Fatal(err)
				}
				if told = append(told, c.StatusRef); len(told) == len(want) {
					break
				}
			}
			wantEqual(t, "told", want, told)
		}
		// A ledger that comes from a backup does not take a cursor from after it.
		var last toolruntime.Cursor
		for c := range one.Completions(ctx, "", &toolruntime.CompletionOptions{UntilNow: true}) {
			last = c.Cursor
		}
		d.mustSQL("DELETE FROM downstream_receipts WHERE downstream_pk = (SELECT MAX(downstream_pk) FROM downstream_receipts)")
		for _, err := range one.Completions(ctx, last, nil) {
			if !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("a cursor of what is gone: %v", err)
			}
		}
	})
}
