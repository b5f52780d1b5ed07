package toolruntime_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

// An outlet is a ledger beside a table of the host's, and a way to write in both.
type outlet struct {
	*fixture
	address string // of the ledger
	orders  string // the host's table
	// in runs do in a transaction, commits when it returns nil, and rolls back otherwise.
	in func(ctx context.Context, do func(run func(query string) error, tx toolruntime.HostTx) error) error
}

// shops are the ways. Each opens what it needs at an address, and makes it where that
// is "".
var shops = map[string]func(t testing.TB, address string) *outlet{
	"sqlite":           func(t testing.TB, address string) *outlet { return newSQLiteShop(t, address) },
	"postgres, update": func(t testing.TB, address string) *outlet { return newUpdateShop(t, address) },
	"postgres, sql":    newSQLShop,
	"postgres, pgx":    newPgxShop,
}

func eachShop(t *testing.T, run func(t *testing.T, s *outlet)) {
	for name, open := range shops {
		t.Run(name, func(t *testing.T) { run(t, open(t, "")) })
	}
}

// newOutlet is an outlet without a way to write.
func newOutlet(t testing.TB, store *toolruntime.Store, address, orders string) *outlet {
	t.Helper()
	t.Cleanup(func() { store.Close() })
	s := &outlet{address: address, orders: orders, fixture: &fixture{bank: &bank{keys: map[string]bool{}}, now: 1_784_419_200,
		asked: func() (bool, error) { return true, nil }}}
	s.fixture.t, _ = t.(*testing.T)
	var err error
	s.Runtime, err = toolruntime.New(store, &toolruntime.Options{
		Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return s.asked() },
		Approvers: func(_ context.Context, _ toolresult.Principal, _, approver string) (bool, error) {
			return approver == "reviewer", nil
		},
		Now: func() time.Time { return time.Unix(s.time(), 0) },
	}, s.tool())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *outlet) tool() toolruntime.Registration {
	return toolruntime.Tool[payArgs, payment]{
		Name: "pay", Effect: toolruntime.Idempotent, Equal: map[string]string{"amount": "amount"},
		Resource: func(payArgs) string { return "account" },
		Run: func(_ context.Context, e toolruntime.Effect, a payArgs) (toolruntime.Receipt[payment], error) {
			return s.bank.pay(e, a)
		},
	}
}

func (s *outlet) byUpdate(store *toolruntime.Store) *outlet {
	s.in = func(ctx context.Context, do func(func(string) error, toolruntime.HostTx) error) error {
		return store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
			return do(func(query string) error {
				_, err := tx.ExecContext(ctx, query)
				return err
			}, tx)
		})
	}
	return s
}

func newSQLiteShop(t testing.TB, address string) *outlet {
	t.Helper()
	made := address == ""
	if made {
		address = filepath.Join(t.TempDir(), "ledger.db")
	}
	store, err := sqlitestore.Open(context.Background(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newOutlet(t, store, address, "app_orders").byUpdate(store)
	if made {
		s.make(t)
	}
	return s
}

// make makes the host's table.
func (s *outlet) make(t testing.TB) {
	t.Helper()
	err := s.in(context.Background(), func(run func(string) error, _ toolruntime.HostTx) error {
		return run("CREATE TABLE " + s.orders + " (number INTEGER)")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newPostgresShop has the host's table in a schema of its own.
func newPostgresShop(t testing.TB, address string) (*outlet, *toolruntime.Store) {
	t.Helper()
	made := address == ""
	if made {
		address = pgtest.Schema(t)
	}
	store, err := pgstore.Open(context.Background(), address, &pgstore.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	s := newOutlet(t, store, address, "")
	if made {
		beside := pgtest.Schema(t)
		s.orders = searchPath(t, beside) + ".orders"
		if _, err := pgtest.Open(t, beside).Exec("CREATE TABLE orders (number INTEGER)"); err != nil {
			t.Fatal(err)
		}
	}
	return s, store
}

func searchPath(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}

func newUpdateShop(t testing.TB, address string) *outlet {
	s, store := newPostgresShop(t, address)
	return s.byUpdate(store)
}

// server is the address of a host, whose sessions know nothing of the ledger.
func (s *outlet) server() string { return pgtest.With(s.address, "search_path", "public") }

func newSQLShop(t testing.TB, address string) *outlet {
	s, _ := newPostgresShop(t, address)
	db := pgtest.Open(t, s.server())
	s.in = func(ctx context.Context, do func(func(string) error, toolruntime.HostTx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		err = do(func(query string) error {
			_, err := tx.ExecContext(ctx, query)
			return err
		}, pgstore.SQLTx(tx))
		if err != nil {
			return err
		}
		return tx.Commit()
	}
	return s
}

func newPgxShop(t testing.TB, address string) *outlet {
	s, _ := newPostgresShop(t, address)
	pool, err := pgxpool.New(context.Background(), s.server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.in = func(ctx context.Context, do func(func(string) error, toolruntime.HostTx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return do(func(query string) error {
				_, err := tx.Exec(ctx, query)
				return err
			}, pgstore.PgxTx(tx))
		})
	}
	return s
}

func (s *outlet) insert() string { return "INSERT INTO " + s.orders + " VALUES (7)" }

// stored are the host's rows, the operations, and the call identities.
func (s *outlet) stored() [3]int64 {
	s.t.Helper()
	var got [3]int64
	driver, at := "pgx", s.address
	if !strings.Contains(at, "://") {
		driver = "sqlite3"
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	for i, table := range []string{s.orders, "operations", "call_bindings"} {
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&got[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	return got
}

func (s *outlet) expect(orders, operations, bindings int64) {
	s.t.Helper()
	if diff := cmp.Diff([3]int64{orders, operations, bindings}, s.stored()); diff != "" {
		s.t.Errorf("orders, operations, call identities (-want +got):\n%s", diff)
	}
}

// keyed is a call of its own under a key.
func keyed(key, call, arguments string) toolresult.Call {
	c := payCall()
	c.IdempotencyKey, c.CallID, c.Arguments = key, call, []byte(arguments)
	return c
}

// prepare is for a new write, with an approval of the reviewer.
func (s *outlet) prepare(c toolresult.Call) *toolruntime.Submission {
	s.t.Helper()
	b, err := s.Bind(payer, c)
	if err != nil {
		s.t.Fatal(err)
	}
	sub, err := s.Prepare(context.Background(), payer, c, toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+60, 0)))
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// TestHostTx: what the host writes and the call that it accepts are stored together, or
// neither is; and the workers carry out what is there.
func TestHostTx(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	no := errors.New("no")
	tests := []struct {
		name string
		end  func() error // of the host's function
		want [3]int64
	}{
		{"commit", func() error { return nil }, [3]int64{1, 1, 1}},
		{"rollback", func() error { return no }, [3]int64{}},
		{"panic", func() error { panic("no") }, [3]int64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *outlet) {
				ctx := context.Background()
				sub := s.prepare(payCall())
				if sub.Answer() != nil {
					t.Fatalf("an answer: %v", sub.Answer().Code())
				}
				s.expect(0, 0, 0)
				var pkg *toolresult.Package
				err := func() (err error) {
					defer func() {
						if r := recover(); r != nil {
							err = no
						}
					}()
					return s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
						if err := run(s.insert()); err != nil {
							return err
						}
						var stored bool
						var err error
						if pkg, stored, err = sub.SubmitTx(ctx, tx); err != nil || !stored {
							return fmt.Errorf("stored %v: %w", stored, err)
						}
						return tt.end()
					})
				}()
				if (err == nil) != (tt.want[1] == 1) {
					t.Fatal(err)
				}
				spec, _ := s.Spec("pay")
				if problems := toolresult.Validate(s.bound(), spec, pkg); len(problems) > 0 || pkg.Code() != toolresult.Accepted {
					t.Errorf("%s: %v", pkg.Code(), problems)
				}
				s.expect(tt.want[0], tt.want[1], tt.want[2])
				s.checkInvariants()
				if err != nil {
					if pkg, err := s.Status(ctx, payer, payCall()); err != nil || pkg.Code() != toolresult.NotFound {
						t.Errorf("after the rollback: %v, %v", pkg, err)
					}
					return
				}
				s.work(t)
			})
		})
	}
}

// work lets a worker carry out the call, and waits for the answer.
func (s *outlet) work(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Work(ctx, nil) }()
	pkg, err := s.Await(ctx, payer, payCall())
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if pkg.Code() != toolresult.OK || s.bank.calls != 1 {
		t.Errorf("%s after %d effects", pkg.Code(), s.bank.calls)
	}
	s.checkInvariants()
}

// TestHostTxWakes: a worker that is idle begins at once after the commit.
func TestHostTxWakes(t *testing.T) {
	eachShop(t, func(t *testing.T, s *outlet) {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- s.Work(ctx, &toolruntime.WorkOptions{Poll: time.Hour}) }()
		sub := s.prepare(payCall())
		if err := s.in(ctx, func(_ func(string) error, tx toolruntime.HostTx) error {
			_, _, err := sub.SubmitTx(ctx, tx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, update := s.wakes(); !update {
			s.Wake()
		}
		pkg, err := s.Await(ctx, payer, payCall())
		stop()
		if err := errors.Join(err, <-ended); err != nil || pkg.Code() != toolresult.OK {
			t.Errorf("%v, %v", pkg, err)
		}
	})
}

// wakes reports whether the shop writes by Update, which wakes the workers itself.
func (s *outlet) wakes() (string, bool) {
	var is bool
	_ = s.in(context.Background(), func(_ func(string) error, tx toolruntime.HostTx) error {
		_, is = tx.(toolruntime.UpdateTx)
		return errors.New("rolled back")
	})
	return s.address, is
}

// TestPrepareAnswers: whatever needs no transaction is answered as Submit does, and as
// durably.
func TestPrepareAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	tests := []struct {
		name    string
		change  func(*outlet, *toolresult.Call)
		expires int64
		want    toolresult.Code
	}{
		{"no such tool", func(_ *outlet, c *toolresult.Call) { c.Name = "fly" }, 60, toolresult.UnknownTool},
		{"arguments", func(_ *outlet, c *toolresult.Call) { c.Arguments = []byte(`{"amount":"much"}`) }, 60, toolresult.InvalidArguments},
		{"cut off", func(_ *outlet, c *toolresult.Call) { c.Arguments = []byte(`{"amount":`) }, 60, toolresult.InvalidArguments},
		{"no key", func(_ *outlet, c *toolresult.Call) { c.IdempotencyKey = "" }, 60, toolresult.IdempotencyKeyRequired},
		{"not allowed", func(s *outlet, _ *toolresult.Call) { s.asked = func() (bool, error) { return false, nil } }, 60, toolresult.NotFound},
		{"no approval", func(*outlet, *toolresult.Call) {}, 0, toolresult.ApprovalRequired},
		{"expired", func(*outlet, *toolresult.Call) {}, -1, toolresult.ApprovalInvalid},
		{"taken by another request", func(s *outlet, c *toolresult.Call) { s.taken(); c.Arguments = []byte(`{"amount":6}`); c.CallID = "d" }, 60, toolresult.IdempotencyConflict},
		{"another call by this id", func(s *outlet, c *toolresult.Call) { s.taken(); c.Arguments = []byte(`{"amount":6}`) }, 60, toolresult.CallIDConflict},
		{"submitted before", func(s *outlet, c *toolresult.Call) { s.taken() }, 0, toolresult.Accepted},
		{"carried out before", func(s *outlet, c *toolresult.Call) { s.taken(); _, _ = s.process() }, 0, toolresult.OK},
	}
	ctx := context.Background()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"sqlite", "postgres, sql"} {
				t.Run(name, func(t *testing.T) {
					answer := func(ask func(*outlet, toolresult.Call, []toolresult.Approval) (*toolresult.Package, error)) (toolresult.Code, toolruntime.Counts) {
						s := shops[name](t, "")
						c := payCall()
						tt.change(s, &c)
						var approvals []toolresult.Approval
						if b, err := s.Bind(payer, c); err == nil && tt.expires != 0 {
							approvals = []toolresult.Approval{toolresult.NewApproval(b, "a", "reviewer", time.Unix(s.time()+tt.expires, 0))}
						}
						pkg, err := ask(s, c, approvals)
						if err != nil || pkg == nil {
							t.Fatal(pkg, err)
						}
						counts, err := s.Counts(ctx)
						if err != nil {
							t.Fatal(err)
						}
						return pkg.Code(), counts
					}
					code, counts := answer(func(s *outlet, c toolresult.Call, a []toolresult.Approval) (*toolresult.Package, error) {
						return s.Submit(ctx, payer, c, a...)
					})
					prepared, alike := answer(func(s *outlet, c toolresult.Call, a []toolresult.Approval) (*toolresult.Package, error) {
						sub, err := s.Prepare(ctx, payer, c, a...)
						if err != nil {
							return nil, err
						}
						// There is nothing to store, in whatever transaction.
						pkg, stored, err := sub.SubmitTx(ctx, nil)
						if err != nil || stored || pkg != sub.Answer() {
							t.Errorf("SubmitTx: %v, %v, %v", pkg, stored, err)
						}
						return sub.Answer(), nil
					})
					if code != tt.want || prepared != tt.want {
						t.Errorf("Submit says %s, Prepare %s, want %s", code, prepared, tt.want)
					}
					if diff := cmp.Diff(counts, alike); diff != "" {
						t.Errorf("what is stored (-Submit +Prepare):\n%s", diff)
					}
				})
			}
		})
	}
}

// taken submits the call.
func (s *outlet) taken() {
	s.t.Helper()
	s.must(s.submit())
}

// TestHostTxTaken: who finds in the transaction that the key, or the identity, is taken
// gets the answer of the ledger, is told that nothing was stored, and the transaction
// goes on.
func TestHostTxTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	taken := map[string]func(s *outlet, first func(toolresult.Call)){
		"in this transaction": func(_ *outlet, first func(toolresult.Call)) { first(payCall()) },
		"by another before": func(s *outlet, _ func(toolresult.Call)) {
			s.taken()
		},
	}
	tests := []struct {
		name     string
		second   toolresult.Call
		want     toolresult.Code
		bindings int64
	}{
		{"the same", payCall(), toolresult.Accepted, 1},
		{"another call for the same", keyed("k", "d", `{"amount":5}`), toolresult.Accepted, 2},
		{"another request", keyed("k", "d", `{"amount":6}`), toolresult.IdempotencyConflict, 2},
		{"another key by this identity", keyed("l", "c", `{"amount":5}`), toolresult.CallIDConflict, 1},
	}
	ctx := context.Background()
	for by, take := range taken {
		for _, tt := range tests {
			t.Run(by+"/"+tt.name, func(t *testing.T) {
				eachShop(t, func(t *testing.T, s *outlet) {
					first, second := s.prepare(payCall()), s.prepare(tt.second)
					if by == "by another before" {
						take(s, nil)
					}
					err := s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
						if by == "in this transaction" {
							take(s, func(toolresult.Call) {
								if _, stored, err := first.SubmitTx(ctx, tx); err != nil || !stored {
									t.Fatal(stored, err)
								}
							})
						}
						pkg, stored, err := second.SubmitTx(ctx, tx)
						if err != nil || stored || pkg.Code() != tt.want {
							t.Errorf("%v, %v, %v", pkg, stored, err)
						}
						return run(s.insert())
					})
					if err != nil {
						t.Fatal(err)
					}
					s.expect(1, 1, tt.bindings)
					s.checkInvariants()
				})
			})
		}
	}
}

// TestHostTxExpires: an approval is held against the time at which the write is stored.
func TestHostTxExpires(t *testing.T) {
	eachShop(t, func(t *testing.T, s *outlet) {
		ctx := context.Background()
		sub := s.prepare(payCall())
		s.pass(60)
		err := s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
			pkg, stored, err := sub.SubmitTx(ctx, tx)
			if err != nil || stored || pkg.Code() != toolresult.ApprovalInvalid {
				t.Errorf("%v, %v, %v", pkg, stored, err)
			}
			return run(s.insert())
		})
		if err != nil {
			t.Fatal(err)
		}
		s.expect(1, 0, 0)
	})
}

// late is an engine whose clock is an hour ahead after so many readings.
type late struct {
	engine.Engine
	readings int
}

func (l *late) Now() time.Time {
	if l.readings--; l.readings < 0 {
		return time.Unix(1_784_419_200, 0).Add(time.Hour)
	}
	return time.Unix(1_784_419_200, 0)
}

func (l *late) Join(ctx context.Context, tx engine.HostTx, unit engine.Unit) error {
	return l.Engine.(engine.Joiner).Join(ctx, tx, unit)
}

// TestHostTxExpiresMeanwhile: an approval that expires while the rows are written takes
// them with it, and nothing of the host's.
func TestHostTxExpiresMeanwhile(t *testing.T) {
	eachShop(t, func(t *testing.T, s *outlet) {
		ctx := context.Background()
		l := &late{readings: 1000}
		toolruntime.TestingOnlyWrapEngine(s.TestingOnlyStore(), func(e engine.Engine) engine.Engine {
			l.Engine = e
			return l
		})
		allow := func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil }
		rt, err := toolruntime.New(s.TestingOnlyStore(), &toolruntime.Options{Authorizer: allow, Approvers: allow}, s.tool())
		if err != nil {
			t.Fatal(err)
		}
		s.Runtime = rt
		sub := s.prepare(payCall())
		err = s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
			l.readings = 2 // the third is the one after the rows
			pkg, stored, err := sub.SubmitTx(ctx, tx)
			if err != nil || stored || pkg.Code() != toolresult.ApprovalInvalid {
				t.Errorf("%v, %v, %v", pkg, stored, err)
			}
			return run(s.insert())
		})
		if err != nil {
			t.Fatal(err)
		}
		s.expect(1, 0, 0)
	})
}

// TestHostTxTogether: of many who submit one key with a row of theirs, one stores both.
func TestHostTxTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	const hosts = 64
	eachShop(t, func(t *testing.T, s *outlet) {
		ctx := context.Background()
		var mu sync.Mutex
		var all sync.WaitGroup
		codes := map[toolresult.Code]int{}
		again := errors.New("it is there")
		subs := make([]*toolruntime.Submission, hosts)
		for i := range subs {
			subs[i] = s.prepare(keyed("k", fmt.Sprint("call-", i), `{"amount":5}`))
		}
		for _, sub := range subs {
			all.Go(func() {
				var pkg *toolresult.Package
				for {
					err := s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) (err error) {
						if err := run(s.insert()); err != nil {
							return err
						}
						var stored bool
						if pkg, stored, err = sub.SubmitTx(ctx, tx); err == nil && !stored {
							err = again
						}
						return err
					})
					if errors.Is(err, toolruntime.ErrRepeat) {
						continue
					}
					if err != nil && !errors.Is(err, again) {
						t.Error(err)
						return
					}
					break
				}
				mu.Lock()
				codes[pkg.Code()]++
				mu.Unlock()
			})
		}
		all.Wait()
		if diff := cmp.Diff(map[toolresult.Code]int{toolresult.Accepted: hosts}, codes); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		s.expect(1, 1, 1)
		s.checkInvariants()
	})
}

// TestHostTxMisuse: what cannot hold a call is refused, and nothing of it is stored.
func TestHostTxMisuse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	ctx := context.Background()
	eachShop(t, func(t *testing.T, s *outlet) {
		sub := s.prepare(payCall())
		refused := func(what string, tx toolruntime.HostTx) {
			t.Helper()
			if pkg, stored, err := sub.SubmitTx(ctx, tx); !errors.Is(err, toolruntime.ErrInvalidInput) || stored || pkg != nil {
				t.Errorf("%s: %v, %v, %v", what, pkg, stored, err)
			}
		}
		refused("no transaction", nil)
		refused("no transaction of database/sql", pgstore.SQLTx(nil))
		refused("no transaction of pgx", pgstore.PgxTx(nil))
		db, err := sql.Open("sqlite3", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		foreign, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		refused("of another driver", pgstore.SQLTx(foreign))
		for name, open := range shops {
			other := open(t, "")
			if err := other.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
				if sqlite, there := name == "sqlite", strings.Contains(s.address, "://"); sqlite == there || strings.Contains(name, "update") {
					refused("of another store: "+name, tx)
				}
				return run(other.insert())
			}); err != nil {
				t.Error(err)
			}
		}
		var kept toolruntime.HostTx
		if err := s.in(ctx, func(_ func(string) error, tx toolruntime.HostTx) error { kept = tx; return nil }); err != nil {
			t.Fatal(err)
		}
		refused("one that has ended", kept)
		s.expect(0, 0, 0)
	})
}

// TestHostTxCancelled: a context that has ended before the first statement stores
// nothing, and one that ends the transaction takes all of it.
func TestHostTxCancelled(t *testing.T) {
	eachShop(t, func(t *testing.T, s *outlet) {
		sub := s.prepare(payCall())
		ctx, cancel := context.WithCancel(context.Background())
		err := s.in(context.Background(), func(run func(string) error, tx toolruntime.HostTx) error {
			cancel()
			if _, stored, err := sub.SubmitTx(ctx, tx); !errors.Is(err, context.Canceled) || stored {
				t.Errorf("%v, %v", stored, err)
			}
			return run(s.insert())
		})
		if err != nil {
			t.Fatal(err)
		}
		s.expect(1, 0, 0)
		if _, update := s.wakes(); update {
			return // its transaction is bound to no context
		}
		ctx, cancel = context.WithCancel(context.Background())
		if err := s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
			_, _, err := sub.SubmitTx(context.Background(), tx)
			cancel()
			return errors.Join(err, run(s.insert()))
		}); err == nil {
			t.Error("it was committed")
		}
		s.expect(1, 0, 0)
	})
}

// TestUpdate: what an Update gives away ends with it, and nothing that would wait for
// it begins in it.
func TestUpdate(t *testing.T) {
	for _, name := range []string{"sqlite", "postgres, update"} {
		t.Run(name, func(t *testing.T) {
			s := shops[name](t, "")
			ctx := context.Background()
			store := s.TestingOnlyStore()
			var kept toolruntime.UpdateTx
			err := store.Update(ctx, func(ctx context.Context, tx toolruntime.UpdateTx) error {
				kept = tx
				if _, err := s.Prepare(ctx, payer, payCall()); !errors.Is(err, toolruntime.ErrInvalidInput) {
					t.Errorf("Prepare: %v", err)
				}
				if err := store.Update(ctx, func(context.Context, toolruntime.UpdateTx) error { return nil }); !errors.Is(err, toolruntime.ErrInvalidInput) {
					t.Errorf("Update: %v", err)
				}
				if _, err := tx.ExecContext(ctx, s.insert()); err != nil {
					return err
				}
				rows, err := tx.QueryContext(ctx, "SELECT number FROM "+s.orders)
				if err != nil {
					return err
				}
				defer rows.Close()
				if !rows.Next() {
					t.Error("the row is not seen")
				}
				return rows.Err()
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kept.ExecContext(ctx, s.insert()); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("Exec: %v", err)
			}
			if _, err := kept.QueryContext(ctx, "SELECT 1"); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("Query: %v", err)
			}
			var n int
			if err := kept.QueryRowContext(ctx, "SELECT 1").Scan(&n); err == nil {
				t.Errorf("QueryRow: %v", err)
			}
			if err := store.Update(ctx, nil); !errors.Is(err, toolruntime.ErrInvalidInput) {
				t.Errorf("no function: %v", err)
			}
			s.expect(1, 0, 0)
		})
	}
}

// TestUpdateLost: SQLite ends the transaction of a statement that is interrupted. What
// comes after that would be committed by itself, and is refused.
func TestUpdateLost(t *testing.T) {
	s := shops["sqlite"](t, "")
	ctx := context.Background()
	sub := s.prepare(payCall())
	err := s.in(ctx, func(run func(string) error, tx toolruntime.HostTx) error {
		if err := run(s.insert()); err != nil {
			return err
		}
		if err := run("INSERT OR ROLLBACK INTO app_orders SELECT RAISE(ROLLBACK, 'x')"); err == nil {
			t.Log("no error")
		}
		_ = run("CREATE TRIGGER app_t AFTER INSERT ON app_orders BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
		_ = run(s.insert()) // ends the transaction
		if err := run(s.insert()); err == nil {
			t.Error("a statement was taken after the end of the transaction")
		}
		if _, stored, err := sub.SubmitTx(ctx, tx); err == nil || stored {
			t.Errorf("SubmitTx: %v, %v", stored, err)
		}
		return nil
	})
	if err == nil {
		t.Error("it was committed")
	}
	s.expect(0, 0, 0)
}

// childShop says to a child process which shop, and where.
const childShop = "TOOLRUNTIME_TEST_SHOP"

// TestHostTxChild is no test: it is the process that TestHostTxKilled kills.
func TestHostTxChild(t *testing.T) {
	told := strings.Split(os.Getenv(childShop), "|")
	if len(told) != 3 {
		t.Skip("runs in the child of TestHostTxKilled")
	}
	s := shops[told[0]](t, told[1])
	s.orders = told[2]
	sub := s.prepare(payCall())
	_ = s.in(context.Background(), func(run func(string) error, tx toolruntime.HostTx) error {
		if err := run(s.insert()); err != nil {
			t.Fatal(err)
		}
		if _, stored, err := sub.SubmitTx(context.Background(), tx); err != nil || !stored {
			t.Fatal(stored, err)
		}
		fmt.Println("submitted")
		select {}
	})
}

// TestHostTxKilled: a process that dies between the submission and the commit leaves
// neither.
func TestHostTxKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	eachShop(t, func(t *testing.T, s *outlet) {
		name := t.Name()[strings.Index(t.Name(), "/")+1:]
		cmd := exec.Command(self, "-test.run=^TestHostTxChild$")
		cmd.Env = append(os.Environ(), childShop+"="+strings.ReplaceAll(name, "_", " ")+"|"+s.address+"|"+s.orders)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		submitted := false
		for lines := bufio.NewScanner(out); !submitted && lines.Scan(); {
			submitted = lines.Text() == "submitted"
			if !submitted {
				t.Log(lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if !submitted {
			t.Fatal("the child has not submitted")
		}
		// It waits for the end of the other's transaction, where that holds the key.
		sub := s.prepare(payCall())
		if err := s.in(context.Background(), func(_ func(string) error, tx toolruntime.HostTx) error {
			if _, stored, err := sub.SubmitTx(context.Background(), tx); err != nil || !stored {
				t.Errorf("%v, %v", stored, err)
			}
			s.expect(0, 0, 0)
			return errors.New("rolled back")
		}); err == nil {
			t.Error("it was committed")
		}
		s.expect(0, 0, 0)
		s.checkInvariants()
	})
}
