package pgstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// pair runs two units that each wait, in their first try, until the other has
// come as far: the conflict between them is certain.
func pair(t *testing.T, e *pgEngine, bodies [2]func(ctx context.Context, q engine.Querier, meet func()) error) (tries int64) {
	t.Helper()
	var count atomic.Int64
	var met, done sync.WaitGroup
	met.Add(2)
	for _, body := range bodies {
		first := true
		done.Go(func() {
			err := e.Write(context.Background(), func(ctx context.Context, q engine.Querier) error {
				count.Add(1)
				return body(ctx, q, func() {
					if first {
						first = false
						met.Done()
						met.Wait()
					}
				})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	return count.Load()
}

// operation inserts a row that the tests can fight for.
func operation(t *testing.T, address string, pk string) {
	t.Helper()
	_, err := pgtest.Open(t, address).Exec(`INSERT INTO operations (operation_pk, tenant_id, subject_id, tool_name, idempotency_key, request_sha256,
		arguments_json, input_schema_revision, output_schema_revision, effect_revision, handler_revision, producer_revision, policy_revision,
		approval_id, approver_id, approval_digest, approval_expires_at, approved_at, first_operation_id, first_call_id, first_response_id,
		first_provider, first_api_family, first_adapter_revision, status_ref, state, created_at, updated_at)
		VALUES (` + pk + `, 't', 's', 'tool', 'key` + pk + `', repeat('a', 64), '{}', '', '', '', '', '', '', '', '', repeat('a', 64), 1, 1, '', '', '', '', '', '',
		'status_' || repeat('` + pk + `', 32), 'pending', 1, 1)`)
	if err != nil {
		t.Fatal(err)
	}
}

func touch(ctx context.Context, q engine.Querier, pk int64) error {
	o, err := q.GetOperation(ctx, pk)
	if err != nil {
		return err
	}
	_, err = q.MoveOperation(ctx, dbgen.MoveOperationParams{State: o.State, UpdatedAt: o.UpdatedAt + 1, RowDigest: []byte{},
		OperationPK: pk, FromDigest: o.RowDigest, FromState: o.State, FromUpdatedAt: o.UpdatedAt, FromReason: o.Reason,
		TenantID: o.TenantID, SubjectID: o.SubjectID, ToolName: o.ToolName, IdempotencyKey: o.IdempotencyKey,
		RequestSha256: o.RequestSha256, ArgumentsJSON: o.ArgumentsJSON, ApprovalDigest: o.ApprovalDigest,
		ApprovalExpiresAt: o.ApprovalExpiresAt, ApprovedAt: o.ApprovedAt, StatusRef: o.StatusRef, CreatedAt: o.CreatedAt})
	return err
}

// TestConflict: of two units that read and then write one row, one is repeated
// and sees what the other has written.
func TestConflict(t *testing.T) {
	e, address := newEngine(t, Options{})
	operation(t, address, "1")
	body := func(ctx context.Context, q engine.Querier, meet func()) error {
		if _, err := q.GetOperation(ctx, 1); err != nil {
			return err
		}
		meet()
		return touch(ctx, q, 1)
	}
	tries := pair(t, e, [2]func(context.Context, engine.Querier, func()) error{body, body})
	var updated int64
	if err := pgtest.Open(t, address).QueryRow("SELECT updated_at FROM operations").Scan(&updated); err != nil {
		t.Fatal(err)
	}
	if updated != 3 || tries < 3 {
		t.Errorf("updated_at %d after %d tries, want 3 after 3 at least: an update was lost", updated, tries)
	}
}

// TestDeadlock: two units that take two rows in opposite orders both succeed. The
// victim may come back before the other has committed, and is then repeated once
// more.
func TestDeadlock(t *testing.T) {
	e, address := newEngine(t, Options{})
	operation(t, address, "1")
	operation(t, address, "2")
	body := func(a, b int64) func(context.Context, engine.Querier, func()) error {
		return func(ctx context.Context, q engine.Querier, meet func()) error {
			if err := touch(ctx, q, a); err != nil {
				return err
			}
			meet()
			return touch(ctx, q, b)
		}
	}
	if tries := pair(t, e, [2]func(context.Context, engine.Querier, func()) error{body(1, 2), body(2, 1)}); tries < 3 {
		t.Errorf("%d tries, want 3 at least: no unit was the victim", tries)
	}
	var updated [2]int64
	if err := pgtest.Open(t, address).QueryRow("SELECT min(updated_at), max(updated_at) FROM operations").Scan(&updated[0], &updated[1]); err != nil {
		t.Fatal(err)
	}
	if want := [2]int64{3, 3}; updated != want {
		t.Errorf("updated_at %v, want %v: an update was lost", updated, want)
	}
}

// TestConstraintIsNotRepeatedForever: a row that is refused is refused.
func TestConstraintIsNotRepeatedForever(t *testing.T) {
	e, address := newEngine(t, Options{})
	operation(t, address, "1")
	tries := 0
	err := e.Write(context.Background(), func(ctx context.Context, q engine.Querier) error {
		tries++
		return q.InsertEvent(ctx, dbgen.InsertEventParams{OperationPK: 1, EventID: "e", State: "nonsense", RowDigest: []byte{}})
	})
	if !errors.Is(err, engine.ErrConstraint) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestReadOnly: a server that cannot be written is waited for, and then named; no
// connection to it is kept.
func TestReadOnly(t *testing.T) {
	_, address := newEngine(t, Options{})
	e, err := open(context.Background(), pgtest.With(address, "default_transaction_read_only", "on"), &Options{RetryTimeout: 50 * time.Millisecond}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Write(context.Background(), putMetadata("row")); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if n := e.db.Stats().OpenConnections; n != 0 {
		t.Errorf("%d connections were kept", n)
	}
}

// TestKilledBackend: a connection that is lost inside a unit repeats the unit.
func TestKilledBackend(t *testing.T) {
	e, address := newEngine(t, Options{})
	admin, tries := pgtest.Open(t, address), 0
	err := e.Write(context.Background(), func(ctx context.Context, q engine.Querier) error {
		if tries++; tries == 1 {
			if err := putMetadata("first")(ctx, q); err != nil {
				return err
			}
			if _, err := admin.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE application_name = 'toolruntime' AND state = 'idle in transaction' AND query LIKE '%runtime_metadata%'`); err != nil {
				return err
			}
		}
		return putMetadata("second")(ctx, q)
	})
	if err != nil || tries != 2 || hasMetadata(t, e, "first") || !hasMetadata(t, e, "second") {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestContexts: waiting obeys the context, a unit whose turn has come does not.
func TestContexts(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	ctx, cancel := context.WithCancel(context.Background())
	err := e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		waiting, giveUp := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer giveUp()
		if err := e.Write(waiting, putMetadata("waiter")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the waiter got %v", err)
		}
		cancel()
		return putMetadata("runner")(ctx, q)
	})
	if err != nil || hasMetadata(t, e, "waiter") || !hasMetadata(t, e, "runner") {
		t.Errorf("got %v", err)
	}
	if err := e.Write(ctx, putMetadata("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call got %v", err)
	}
}

// TestPanicAndClose: a panic rolls back, and so does the end of the goroutine; a closed
// engine says so.
func TestPanicAndClose(t *testing.T) {
	e, _ := newEngine(t, Options{MaxConns: 1})
	ctx := context.Background()
	err := e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
		_ = putMetadata("panic")(ctx, q)
		panic("oops")
	})
	if err == nil || hasMetadata(t, e, "panic") {
		t.Errorf("got %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Write(ctx, func(ctx context.Context, q engine.Querier) error {
			_ = putMetadata("goexit")(ctx, q)
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	if hasMetadata(t, e, "goexit") {
		t.Error("what ended its goroutine was committed")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(ctx, putMetadata("closed")); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A cutter is a proxy that breaks the connection at the first COMMIT, or another
// mark: before the server sees it, or after the server has answered it.
type cutter struct {
	net.Listener
	socket string
	mark   string
	after  bool
	armed  atomic.Bool
	block  atomic.Bool // afterwards, let nobody in
}

func newCutter(t *testing.T, after bool) *cutter {
	t.Helper()
	folder := ""
	if i := strings.Index(pgtest.URL(t), "host=%2F"); i >= 0 {
		folder = strings.ReplaceAll(pgtest.URL(t)[i+len("host="):], "%2F", "/")
		folder, _, _ = strings.Cut(folder, "&")
	} else {
		t.Skip("the server does not listen on a socket")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, socket: filepath.Join(folder, ".s.PGSQL.5432"), mark: "COMMIT", after: after}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if c.block.Load() {
				client.Close()
				continue
			}
			go c.serve(client)
		}
	}()
	return c
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.socket)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Bool
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || cut.Load() {
				client.Close()
				return
			}
			client.Write(buffer[:n])
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte(c.mark)) && c.armed.CompareAndSwap(true, false) {
			if !c.after {
				return
			}
			cut.Store(true)
		}
		if _, err := server.Write(buffer[:n]); err == io.EOF {
			return
		}
	}
}

func (c *cutter) url(address string) string {
	host, port, _ := net.SplitHostPort(c.Addr().String())
	return pgtest.With(pgtest.With(address, "host", host), "port", port)
}

// TestLostAnswer: the answer to a COMMIT is lost. The engine finds out whether
// it took: a unit that has committed is not run again, one that has not is.
func TestLostAnswer(t *testing.T) {
	for _, after := range []bool{false, true} {
		c := newCutter(t, after)
		e, err := open(context.Background(), c.url(pgtest.Schema(t)), &Options{Migrate: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c.armed.Store(true)
		tries, want := 0, 2
		if after {
			want = 1
		}
		err = e.Write(context.Background(), func(ctx context.Context, q engine.Querier) error {
			tries++
			return putMetadata("row")(ctx, q)
		})
		if err != nil || tries != want || !hasMetadata(t, e, "row") || c.armed.Load() {
			t.Errorf("after %v: %v, %d tries, want %d", after, err, tries, want)
		}
	}
}

// TestCommitUnknown: where nobody can be asked, the error says so.
func TestCommitUnknown(t *testing.T) {
	c := newCutter(t, true)
	e, err := open(context.Background(), c.url(pgtest.Schema(t)), &Options{Migrate: true, RetryTimeout: 200 * time.Millisecond}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c.armed.Store(true)
	c.block.Store(true)
	err = e.Write(context.Background(), putMetadata("row"))
	if !errors.Is(err, engine.ErrCommitUnknown) || !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	c.block.Store(false)
	if err := e.Write(context.Background(), putMetadata("row")); err != nil || !hasMetadata(t, e, "row") {
		t.Errorf("repeated: %v", err)
	}
}
