package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// As a ledger grows: one file, to which operations are added from size to size.
// What is measured on it adds some thousand more, of the runtime's own, so that
// the audit is asked about those too.

// A growth is the ledger with its numbers.
type growth struct {
	*session
	b      *bed
	l      *ledger
	filled int64 // operations that fill has made, numbered from 1
	fresh  int64 // the numbers of those that are measured, far above
}

// recent is how many of the newest operations are repeated where those are: a
// provider repeats what it has just called, and not what it called last year.
const recent = 1000

// fillSettings are for filling, which nobody's data depends on.
const fillSettings = "_journal_mode=WAL&_synchronous=OFF&_stmt_cache_size=128&_cache_size=-4194304"

func (s *session) scale(ctx context.Context) (err error) {
	b, err := newBed(s.folder, nil)
	if err != nil {
		return err
	}
	g := &growth{session: s, b: b, fresh: 1 << 40}
	defer func() { b.close() }()
	if g.l, err = newLedger(ctx, b, "sqlite"); err != nil {
		return err
	}
	for _, size := range s.config.scale {
		fmt.Fprintf(os.Stderr, "filling up to %d operations\n", size)
		if err := g.grow(ctx, size); err != nil {
			return err
		}
		for round := 1; round <= s.rounds; round++ {
			if err := g.round(ctx, size, round); err != nil {
				return err
			}
		}
		if err := g.once(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// grow fills the ledger up to so many operations.
func (g *growth) grow(ctx context.Context, size int64) error {
	b := &bed{}
	defer b.close()
	conns, err := g.l.connect(ctx, b, 1, fillSettings)
	if err != nil {
		return err
	}
	c := <-conns
	there, err := g.count(ctx, c)
	if err != nil || there >= size {
		return err
	}
	if err := g.l.fill(ctx, c, g.filled+1, size-there); err != nil {
		return err
	}
	g.filled += size - there
	if _, err = c.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	return syncFile(g.l.address)
}

// syncFile writes a file to disk, so that the first commit after it was filled does
// not have to.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (g *growth) count(ctx context.Context, q dbgen.Querier) (int64, error) {
	counts, err := q.CountRows(ctx)
	return counts.Operations, err
}

// numbers gives numbers of calls that nobody has used.
func (g *growth) numbers() int64 {
	g.fresh += 1 << 30
	return g.fresh
}

// round measures what callers and workers see.
func (g *growth) round(ctx context.Context, size int64, round int) error {
	for _, s := range rotated(g.scenarios(), round, g.rounds) {
		if err := g.one(ctx, s, size, round); err != nil {
			return err
		}
	}
	return nil
}

func (g *growth) scenarios() []scenario {
	var all []scenario
	add := func(system, name string, callers int, setup func(context.Context, *bed) (load, error)) {
		all = append(all, scenario{system, name, "sqlite", callers, setup})
	}
	runtime := func(name string, callers int, ready func() load) {
		add("runtime", name, callers, func(context.Context, *bed) (load, error) { return ready(), nil })
	}
	for _, callers := range []int{1, 64} {
		add("floor", "fresh", callers, func(ctx context.Context, b *bed) (load, error) {
			b.later(g.forgetFloor)
			return g.l.floorWrites(ctx, b, callers, g.numbers(), answering)
		})
		runtime("fresh", callers, func() load { return g.l.fresh(g.numbers()) })
	}
	runtime("work", workers, func() load { return g.l.bulk(g.numbers(), bulkOperations/4, false) })
	add("floor", "due", 1, g.due)
	if g.filled == 0 {
		return all
	}
	known := func(int64) int64 { return rand.Int64N(g.filled) + 1 }
	newest := func(int64) int64 { return g.filled - rand.Int64N(min(recent, g.filled)) }
	for _, callers := range []int{1, 8} {
		replays := func(name string, pick func(int64) int64) {
			add("floor", name, callers, func(ctx context.Context, b *bed) (load, error) { return g.l.floorReplay(ctx, b, callers, pick) })
			runtime(name, callers, func() load { return g.l.replay(pick) })
		}
		replays("replay", known)
		replays("recent", newest)
	}
	runtime("status", 1, func() load { return g.l.status(known) })
	return all
}

// one measures and records a scenario on the ledger of a size.
func (g *growth) one(ctx context.Context, s scenario, size int64, round int) error {
	if !g.match.MatchString(s.String()) {
		return nil
	}
	b, err := newBed(g.folder, nil)
	if err != nil {
		return err
	}
	m, err := measure(ctx, s, b, g.time)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.Stored, m.Round = size, round
	fmt.Fprintf(os.Stderr, "%9d operations  %-24s %12s/s\n", size, s, rate(m.PerSecond))
	return g.record(m, err)
}

// forgetFloor removes the floor's rows, whose digests no audit would accept.
func (g *growth) forgetFloor() error {
	b := &bed{}
	defer b.close()
	ctx := context.Background()
	conns, err := g.l.connect(ctx, b, 1, sqliteWriter)
	if err != nil {
		return err
	}
	c := <-conns
	return c.transact(ctx, func() error {
		for _, from := range []string{
			`attempts WHERE operation_pk IN (SELECT operation_pk FROM floor)`,
			`local_receipts WHERE operation_pk IN (SELECT operation_pk FROM floor)`,
			`outbox WHERE operation_pk IN (SELECT operation_pk FROM floor)`,
			`downstream_receipts WHERE downstream_pk IN (SELECT d.downstream_pk FROM floor f JOIN downstream_receipts d
				ON (d.tenant_id, d.subject_id, d.tool_name, d.idempotency_key) = (f.tenant_id, f.subject_id, f.tool_name, f.idempotency_key))`,
			`call_bindings WHERE status_ref IN (SELECT status_ref FROM floor)`,
			`operations WHERE operation_pk IN (SELECT operation_pk FROM floor)`,
		} {
			query := `WITH floor AS (SELECT * FROM operations WHERE approval_id = '` + floorApproval + `' AND operation_pk > ?) DELETE FROM ` + from
			if _, err := c.ExecContext(ctx, query, g.filled); err != nil {
				return err
			}
		}
		return nil
	})
}

// due is the search of a worker for 32 operations to claim, among a backlog and
// beside all that has ended.
func (g *growth) due(ctx context.Context, b *bed) (load, error) {
	const backlog = 1000
	first := g.numbers()
	if err := together(submitters, backlog, func(i int64) error { return g.l.submit(ctx, first+i) }); err != nil {
		return load{}, err
	}
	b.later(func() error {
		_, err := g.l.drain(context.WithoutCancel(ctx), backlog)
		return err
	})
	conns, err := g.l.connect(ctx, b, 1, sqliteReader)
	if err != nil {
		return load{}, err
	}
	c := <-conns
	return load{do: func(context.Context, int) error {
		lane, err := c.NextLane(context.Background(), "")
		if err != nil {
			return err
		}
		found, err := c.ListDueInLane(context.Background(), dbgen.ListDueInLaneParams{Lane: lane, Now: time.Now().Unix(), Page: 32})
		if err == nil && len(found) != 32 {
			err = fmt.Errorf("%d operations are due", len(found))
		}
		return err
	}}, nil
}

// once measures what takes long and does not vary: the audit of everything, in a
// process of its own, whose peak of memory is then the audit's; and the file.
func (g *growth) once(ctx context.Context, stored int64) error {
	conns, err := g.l.connect(ctx, g.b, 1, sqliteWriter)
	if err != nil {
		return err
	}
	c := <-conns
	operations, err := g.count(ctx, c)
	if err != nil || operations == 0 {
		return err
	}
	if _, err := c.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	var free, page int64
	if err := c.QueryRowContext(ctx, "SELECT f.freelist_count, p.page_size FROM pragma_freelist_count f, pragma_page_size p").Scan(&free, &page); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, auditChild, g.l.address)
	child.Stderr = os.Stderr
	answer, err := child.Output()
	if err != nil {
		return fmt.Errorf("audit of %d operations: %w", operations, err)
	}
	var audit measurement
	if err := json.Unmarshal(answer, &audit); err != nil {
		return err
	}
	audit.Stored, audit.Round = stored, 1
	fmt.Fprintf(os.Stderr, "%9d operations  %-24s %12s/s\n", stored, "audit", rate(audit.PerSecond))
	file := measurement{System: "runtime", Name: "size", Database: "sqlite", Callers: 1, Stored: stored, Round: 1, Operations: operations,
		Extra: map[string]float64{bytesPerOperation: float64(size(g.l.address)-free*page) / float64(operations)}}
	return errors.Join(g.record(audit, nil), g.record(file, nil))
}

// auditChild is the hidden command under which this program audits a ledger.
const auditChild = "audit-child"

// auditAlone audits a ledger and writes what that took.
func auditAlone(ctx context.Context, path string, out io.Writer) error {
	b := &bed{}
	defer b.close()
	l := &ledger{database: "sqlite", address: path}
	if err := l.open(ctx, b); err != nil {
		return err
	}
	counts, err := l.rt.Counts(ctx)
	if err != nil {
		return err
	}
	n, took, err := l.audit(int(counts.Operations)).batch(ctx)
	if err != nil {
		return err
	}
	m := measurement{System: "runtime", Name: "audit", Database: "sqlite", Callers: 1, Operations: int64(n), Seconds: took.Seconds(), PerSecond: float64(n) / took.Seconds(), Extra: map[string]float64{}}
	var kib float64
	if _, err := fmt.Sscan(procValue("/proc/self/status", "VmHWM"), &kib); err == nil {
		m.Extra[peakMiB] = kib / 1024
	}
	return json.NewEncoder(out).Encode(m)
}
