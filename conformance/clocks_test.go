package conformance

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

func withLedgerClock(d *desk, o *toolruntime.Options, _ *[]toolruntime.Registration) {
	d.now = time.Now().Unix() // for approvals
	o.Now = nil
}

// TestHostsWithOtherClocks: the workers of one ledger on PostgreSQL are on hosts
// whose clocks are ten minutes apart either way. Nothing has its effect twice, and no
// lease is taken from its holder.
func TestHostsWithOtherClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; make test-long runs it")
	}
	e := engineNamed(t, "postgres")
	bank, url := openBank(t)
	// Each payment takes most of its lease.
	if err := bank.Set(payments.Switches{Dedup: "off", Faults: map[payments.Fault]payments.Switch{
		payments.Latency: {Count: 1000, DelayMS: 700}}}); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, e, withAuthorizer(anybody), withLedgerClock, withTools(payTools(url, url)...))
	const n = 40
	var refs []string
	for i := range n {
		refs = append(refs, d.submit(payCall("pay_once", fmt.Sprint("k", i))))
	}
	for _, ahead := range []int64{0, 600, -600} {
		p := d.newProcess(t, service{Role: "worker", Name: fmt.Sprint("ahead ", ahead), Bank: url, Careless: url, Own: true, HostAhead: ahead})
		p.start(true)
		defer func() {
			p.signal(syscall.SIGTERM)
			drain(p)
		}()
	}
	for i, ref := range refs {
		d.await(ref)
		if diff := cmp.Diff([]string{"succeeded"}, d.endings(ref)); diff != "" {
			t.Errorf("%d: attempts (-want +got):\n%s", i, diff)
		}
		if got := d.fate(bank, payCall("pay_once", fmt.Sprint("k", i))); got != "succeeded, 1 effect" {
			t.Errorf("%d: %s", i, got)
		}
	}
}
