package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// TestSets writes operations row by row and in sets: the floor in sets must leave the
// same rows, or it measures something else.
func TestSets(t *testing.T) {
	ctx := context.Background()
	s, _, err := startServer(ctx)
	if err != nil {
		pgtest.Missing(t, err)
	}
	defer s.stop()
	b, err := newBed(t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	const size, operations = 3, 12
	w, err := newSetWriter(ctx, b, size)
	if err != nil {
		t.Fatal(err)
	}
	sets := <-w.conns
	w.conns <- sets
	single, err := newLedger(ctx, b, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	conns, err := single.connect(ctx, b, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	rowByRow := <-conns
	one, err := newFloorWriter(single, 0)
	if err != nil {
		t.Fatal(err)
	}
	one.sample = w.sample

	if n, err := w.fill(ctx, operations-1); n != operations || err != nil { // whole sets
		t.Fatal(n, err)
	}
	var calls []*rows
	for range operations {
		calls = append(calls, one.call())
	}
	if err := rowByRow.store(ctx, accepting, calls...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, rowByRow), contents(t, sets)); diff != "" {
		t.Errorf("accepted: row by row -, in sets +\n%s", diff)
	}

	if n, err := w.drain(ctx); n != operations || err != nil {
		t.Fatal(n, err)
	}
	if err := rowByRow.store(ctx, []step{(*rows).finish}, calls...); err != nil {
		t.Fatal(err)
	}
	if _, err := rowByRow.ExecContext(ctx, "UPDATE outbox SET attempt_count = 1"); err != nil { // a claim's, which the floor row by row does not have
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, rowByRow), contents(t, sets)); diff != "" {
		t.Errorf("ended: row by row -, in sets +\n%s", diff)
	}
	if n, err := w.drain(ctx); n != 0 || err != nil {
		t.Error("there was more to do:", n, err)
	}
	if extra, err := b.found(ctx); err != nil || extra[rowsPerOperation] < 6 || extra[rowsPerOperation] > 8 || extra[bytesPerOperation] < 1000 {
		t.Error(extra, err)
	}
}

// contents are the rows of the ledger's tables as text, without what differs from run
// to run: the database's numbers, the times, and the receipts, which are made when a
// call is.
func contents(t *testing.T, c bare) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range []string{"call_bindings", "operations", "outbox", "downstream_receipts", "local_receipts", "attempts"} {
		found, err := c.QueryContext(context.Background(), `SELECT (to_jsonb(t) - '{operation_pk,downstream_pk,updated_at,completed_at,receipt_id,downstream_request_id}'::text[])::text FROM `+table+` t ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var row string
			if err := found.Scan(&row); err != nil {
				t.Fatal(err)
			}
			all[table] = append(all[table], row)
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestSetArrays(t *testing.T) {
	type row struct {
		Key  int64
		Name string
		Sum  []byte
	}
	rows := []row{{1, "a", []byte("x")}, {2, "b", nil}}
	at := func(i int) any { return rows[i] }
	got, err := tableSet{types: []string{"", "text", "bytea"}}.arrays(len(rows), at)
	if err != nil || len(got) != 2 || reflect.ValueOf(got[0]).Len() != 2 || !strings.Contains(fmt.Sprint(got[0]), "b") {
		t.Error(got, err)
	}
	for _, types := range [][]string{{"date", "text", "bytea"}, {"bigint", "date", "bytea"}} {
		if _, err := (tableSet{types: types}).arrays(len(rows), at); err == nil {
			t.Errorf("%v: no error", types)
		}
	}
}
