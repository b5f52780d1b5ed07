package toolruntime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// faulty is an engine whose n-th write goes wrong in one of two ways, and so many after
// it. A verb is a write, as a unit is.
type faulty struct {
	engine.Engine
	mu      sync.Mutex
	writes  int
	failAt  int // 1 is the first write; 0 is none
	again   int // how many after that one fail, too
	persist bool
	busy    int      // so many writes find the database held by another process
	names   []string // of the writes
}

// errFault stands for a broken connection: the store cannot tell what became of
// the transaction.
var errFault = fmt.Errorf("%w: injected", engine.ErrCommitUnknown)

func (f *faulty) Write(ctx context.Context, unit engine.Unit) error {
	return f.write("write", func() error { return f.Engine.Write(ctx, unit) })
}

func (f *faulty) Reserve(ctx context.Context, all ...*engine.Reservation) error {
	return f.write("reserve", func() error { return f.Engine.Reserve(ctx, all...) })
}

func (f *faulty) Move(ctx context.Context, all ...*engine.Motion) error {
	return f.write("move", func() error { return f.Engine.Move(ctx, all...) })
}

func (f *faulty) WriteWith(ctx context.Context, unit engine.UnitWith) error {
	return f.write("write with", func() error { return f.Engine.WriteWith(ctx, unit) })
}

func (f *faulty) write(name string, do func() error) error {
	f.mu.Lock()
	f.writes++
	f.names = append(f.names, name)
	fail, busy := f.failAt > 0 && f.failAt <= f.writes && f.writes <= f.failAt+f.again, f.busy > 0
	if busy {
		f.busy--
	}
	f.mu.Unlock()
	if busy {
		return &engine.Error{Kind: engine.ErrBusy}
	}
	if fail && !f.persist {
		return errFault
	}
	err := do()
	if fail && err == nil {
		return errFault
	}
	return err
}

func (f *faulty) arm(failAt int, persist bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes, f.failAt, f.again, f.persist, f.names = 0, failAt, 0, persist, nil
}

type payArgs struct {
	Amount int64 `json:"amount" schema:"minimum=1"`
}

type payment struct {
	Amount int64 `json:"amount"`
}

// A bank counts the effects that it was asked for, and remembers keys.
type bank struct {
	mu    sync.Mutex
	calls int
	keys  map[string]bool
	fail  error
	bad   bool
	hold  func() // runs before the bank answers
}

func (b *bank) pay(e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	b.keys[e.Identity] = true
	if b.hold != nil {
		b.hold()
	}
	return b.receipt(e, a), b.fail
}

func (b *bank) find(e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.receipt(e, a), b.keys[e.Identity], nil
}

func (b *bank) receipt(e toolruntime.Effect, a payArgs) toolruntime.Receipt[payment] {
	p := payment(a)
	if b.bad {
		p.Amount++
	}
	return toolruntime.Receipt[payment]{ID: "receipt-" + e.Identity[:8], RequestID: "request-" + e.Identity[:8], Data: p}
}

// A fixture is a runtime over a fresh ledger with one tool of the given kind.
type fixture struct {
	t     *testing.T
	bank  *bank
	fault *faulty
	asked func() (bool, error) // answers for the authoriser
	// asking runs before the downstream is asked what it remembers, or is nil.
	asking func()
	mu     sync.Mutex
	now    int64
	*toolruntime.Runtime
}

func (f *fixture) time() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) pass(seconds int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += seconds
}

func newFixture(t *testing.T, kind toolruntime.EffectKind) *fixture {
	t.Helper()
	return newFixtureOn(t, openSQLite, kind)
}

func openSQLite(t *testing.T) (*toolruntime.Store, error) {
	return sqlitestore.Open(context.Background(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
}

func openPostgres(t *testing.T) (*toolruntime.Store, error) {
	return pgstore.Open(context.Background(), pgtest.Schema(t), &pgstore.Options{Migrate: true})
}

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func newFixtureOn(t *testing.T, open func(*testing.T) (*toolruntime.Store, error), kind toolruntime.EffectKind) *fixture {
	t.Helper()
	store, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := &fixture{t: t, bank: &bank{keys: map[string]bool{}}, now: 1_784_419_200,
		asked: func() (bool, error) { return true, nil }}
	toolruntime.TestingOnlyWrapEngine(store, func(e engine.Engine) engine.Engine {
		f.fault = &faulty{Engine: e}
		return f.fault
	})
	tool := toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: kind, Equal: map[string]string{"amount": "amount"},
		Resource: func(payArgs) string { return "account" },
		Run: func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
			return f.bank.pay(e, a)
		},
	}
	if kind != toolruntime.Once {
		tool.Find = func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], bool, error) {
			if f.asking != nil {
				f.asking()
			}
			return f.bank.find(e, a)
		}
	}
	f.Runtime, err = toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return f.asked() },
		Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
		Now:        func() time.Time { return time.Unix(f.time(), 0) },
	}, tool)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var payer = toolresult.Principal{TenantID: "tenant", SubjectID: "subject"}

func payCall() toolresult.Call {
	return toolresult.NewCall(toolresult.Proposal{Name: "pay", Arguments: []byte(`{"amount":5}`)},
		toolresult.ExecutionContext{Provider: "openai", APIFamily: "responses", ResponseID: "r", CallID: "c",
			OperationID: "o", IdempotencyKey: "k", AdapterRevision: "openai-responses-v1"})
}

func (f *fixture) bound() *toolresult.Bound {
	b, err := f.Bind(payer, payCall())
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// defaultLease is [toolruntime.DefaultLease], as the fixtures count.
const defaultLease = int64(toolruntime.DefaultLease / time.Second)

// utc is a time in Unix seconds as histories have it.
func utc(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

// hold claims an operation as a worker that dies then.
func hold(t *testing.T, rt *toolruntime.Runtime, ref, worker string, lease time.Duration) {
	t.Helper()
	outcome, err := rt.Process(dying(drill.AfterClaim), ref, worker, &toolruntime.ProcessOptions{Lease: lease})
	if outcome != toolruntime.CrashedAfterClaim || err != nil {
		t.Fatalf("the claim: %s, %v", outcome, err)
	}
}

// alive is the point of a process that does not die.
const alive drill.Point = ""

// dying is the context of a process that dies at a point.
func dying(p drill.Point) context.Context {
	if p == alive {
		return context.Background()
	}
	return drill.StopAt(context.Background(), p)
}

func (f *fixture) dispatch(point drill.Point) (*toolresult.Package, error) {
	return f.Dispatch(dying(point), payer, payCall(), &toolruntime.DispatchOptions{
		Approvals: f.approved()})
}

// approved is an approval of the fixture's call, for a minute.
func (f *fixture) approved() []toolresult.Approval {
	return []toolresult.Approval{toolresult.NewApproval(f.bound(), "a", "reviewer", time.Unix(f.time()+60, 0))}
}

func (f *fixture) process() (toolruntime.Outcome, error) {
	return f.Process(context.Background(), f.bound().StatusRef(), "worker", nil)
}

func (f *fixture) query() (*toolresult.Package, error) {
	ref := f.bound().StatusRef()
	return f.QueryStatus(context.Background(), payer, payCall().StatusQuery(ref), ref, nil)
}

// checkInvariants holds the ledger against the audit, and the bank against the
// promise of its tool's kind.
func (f *fixture) checkInvariants() {
	f.t.Helper()
	r, err := f.Audit(context.Background(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if !r.Passed {
		f.t.Errorf("audit: %q", r.SemanticErrors)
	}
	if len(f.bank.keys) > 1 {
		f.t.Errorf("the bank saw %d keys for one intent", len(f.bank.keys))
	}
}

// TestOnePath: a fresh dispatch is two verbs, on every engine, and a repetition writes
// nothing. They are what the table below lets fail.
func TestOnePath(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (*toolruntime.Store, error){"sqlite": openSQLite, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			f := newFixtureOn(t, open, toolruntime.Idempotent)
			f.fault.arm(0, false)
			pkg, err := f.dispatch(alive)
			if err != nil || pkg.Code() != toolresult.OK || pkg.Delivery() != toolresult.Fresh {
				t.Fatalf("%v, %v", pkg, err)
			}
			if pkg, err = f.dispatch(alive); err != nil || pkg.Delivery() != toolresult.LocalReplay {
				t.Errorf("repeated: %v, %v", pkg, err)
			}
			if diff := cmp.Diff([]string{"reserve", "move"}, f.fault.names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			f.checkInvariants()
		})
	}
}

// TestFaults lets each write of each flow fail, once without and once with being stored,
// alone and with the one after it. Only what a flow begins with may fail for that: what
// an attempt has come to is written again. Whatever the caller saw, the ledger stays
// whole, and repeating the flow ends it with one effect.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	t.Run("sqlite", func(t *testing.T) { faults(t, openSQLite) })
	t.Run("postgres", func(t *testing.T) { faults(t, openPostgres) })
}

func faults(t *testing.T, open func(*testing.T) (*toolruntime.Store, error)) {
	unknown := toolruntime.ErrCommitUnknown
	flows := []struct {
		name    string
		prepare func(*fixture)
		run     func(*fixture) error
		// What may come of it where the first write fails, and where the one after it
		// fails as well. Who reserves finds out by himself whether it is stored.
		first, both error
	}{
		{"dispatch", func(*fixture) {}, func(f *fixture) error { _, err := f.dispatch(alive); return err }, nil, unknown},
		{"dispatch and observe", func(*fixture) {}, func(f *fixture) error { _, err := f.dispatch(drill.AfterDownstreamCommit); return err }, nil, unknown},
		{"process", func(f *fixture) { f.must(f.dispatch(drill.AfterIntentCommit)) }, func(f *fixture) error { _, err := f.process(); return err }, unknown, unknown},
		{"process a lost attempt", func(f *fixture) { f.must(f.dispatch(drill.AfterClaim)); f.pass(30) }, func(f *fixture) error { _, err := f.process(); return err }, unknown, unknown},
		{"reconcile", func(f *fixture) { f.must(f.dispatch(drill.AfterDownstreamCommit)) }, func(f *fixture) error { _, err := f.query(); return err }, unknown, unknown},
	}
	for _, kind := range []toolruntime.EffectKind{toolruntime.Once, toolruntime.Idempotent, toolruntime.Queryable} {
		for _, flow := range flows {
			for write := 1; ; write++ {
				faults := 0
				for _, persist := range []bool{false, true} {
					for again := range 2 {
						t.Run(fmt.Sprintf("%s/%s/write %d/persisted=%v/again=%d", kind, flow.name, write, persist, again), func(t *testing.T) {
							f := newFixtureOn(t, open, kind)
							flow.prepare(f)
							f.fault.arm(write, persist)
							f.fault.again = again
							err := flow.run(f)
							if f.fault.writes < write {
								t.Skip("the flow has fewer writes")
							}
							faults++
							var want error
							if write == 1 {
								want = []error{flow.first, flow.both}[again]
							}
							if !errors.Is(err, want) {
								t.Errorf("error: %v, want %v", err, want)
							}
							f.checkInvariants()
							f.fault.arm(0, false)
							if kind != toolruntime.Once {
								f.finish()
							}
							if kind == toolruntime.Once && f.bank.calls > 1 {
								t.Errorf("a tool that runs once ran %d times", f.bank.calls)
							}
						})
					}
				}
				if faults == 0 {
					break
				}
			}
		}
	}
}

func (f *fixture) must(pkg *toolresult.Package, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// finish repeats the call, recovers what it left, and expects the one result.
func (f *fixture) finish() {
	f.t.Helper()
	f.must(f.dispatch(alive))
	f.pass(defaultLease)
	if _, err := f.process(); err != nil {
		f.t.Fatal(err)
	}
	pkg, err := f.dispatch(alive)
	if err != nil {
		f.t.Fatal(err)
	}
	if pkg.Code() != toolresult.OK {
		f.t.Errorf("in the end: %s", pkg.Code())
	}
	f.checkInvariants()
	if len(f.bank.keys) != 1 {
		f.t.Errorf("the bank saw %d keys", len(f.bank.keys))
	}
}

// TestEffectKinds shows what each kind does with an attempt of which nobody
// knows whether it had its effect.
func TestEffectKinds(t *testing.T) {
	lost := errors.New("connection reset")
	tests := []struct {
		kind     toolruntime.EffectKind
		happened bool // before the connection was lost
		outcome  toolruntime.Outcome
		code     toolresult.Code
		calls    int
	}{
		{toolruntime.Once, true, toolruntime.NotClaimed, toolresult.OutcomeUnknown, 1},
		{toolruntime.Queryable, true, toolruntime.Succeeded, toolresult.OK, 1},
		{toolruntime.Queryable, false, toolruntime.Succeeded, toolresult.OK, 2},
		{toolruntime.Idempotent, true, toolruntime.Succeeded, toolresult.OK, 2},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/happened=%v", tt.kind, tt.happened), func(t *testing.T) {
			f := newFixture(t, tt.kind)
			f.bank.fail = lost
			pkg, err := f.dispatch(alive)
			if err != nil || pkg.Code() != toolresult.OutcomeUnknown {
				t.Fatalf("%v, %v", pkg, err)
			}
			f.bank.fail = nil
			if !tt.happened {
				clear(f.bank.keys)
			}
			f.pass(defaultLease)
			outcome, err := f.process()
			if err != nil {
				t.Fatal(err)
			}
			again, err := f.dispatch(alive)
			if err != nil {
				t.Fatal(err)
			}
			type result struct {
				Outcome toolruntime.Outcome
				Code    toolresult.Code
				Calls   int
			}
			if diff := cmp.Diff(result{tt.outcome, tt.code, tt.calls}, result{outcome, again.Code(), f.bank.calls}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			f.checkInvariants()
		})
	}
}

// TestOnceLostClaim: a worker that died after its claim may have had the effect,
// so nobody runs it again.
func TestOnceLostClaim(t *testing.T) {
	f := newFixture(t, toolruntime.Once)
	f.must(f.dispatch(drill.AfterClaim))
	f.pass(defaultLease)
	outcome, err := f.process()
	if err != nil || outcome != toolruntime.OutcomeUnknown {
		t.Fatalf("%v, %v", outcome, err)
	}
	if f.bank.calls != 0 {
		t.Errorf("the effect ran %d times", f.bank.calls)
	}
	f.checkInvariants()
}

// TestOutputViolation: an answer outside the contract is kept, reviewed, and
// never the reason for a second effect.
func TestOutputViolation(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	f.bank.bad = true
	for range 2 {
		pkg, err := f.dispatch(alive)
		if err != nil {
			t.Fatal(err)
		}
		if pkg.Code() != toolresult.OutputContractViolation || pkg.StatusRef() != f.bound().StatusRef() {
			t.Errorf("%s %s", pkg.Code(), pkg.StatusRef())
		}
	}
	f.pass(defaultLease)
	if outcome, err := f.process(); err != nil || outcome != toolruntime.NotClaimed {
		t.Errorf("%v, %v", outcome, err)
	}
	if f.bank.calls != 1 {
		t.Errorf("the effect ran %d times", f.bank.calls)
	}
	f.checkInvariants()
}

// TestFence: a worker whose lease ran out and was taken over commits nothing.
func TestFence(t *testing.T) {
	f := newFixture(t, toolruntime.Idempotent)
	f.must(f.dispatch(drill.AfterIntentCommit))
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.bank.hold = func() { close(entered); <-leave }
	go func() { _, err := f.process(); done <- err }()
	<-entered
	f.pass(defaultLease)
	hold(t, f.Runtime, f.bound().StatusRef(), "second", toolruntime.DefaultLease)
	close(leave)
	if err := <-done; !errors.Is(err, toolruntime.ErrLeaseLost) {
		t.Errorf("the stalled worker: %v, want lease lost", err)
	}
	counts, err := f.Counts(context.Background())
	if err != nil || counts.LocalReceipts != 0 || counts.DownstreamReceipts != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
	f.checkInvariants()
}
