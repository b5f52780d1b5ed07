package conformance

import (
	"context"
	"testing"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/drill"
)

// The tests of the user's CrashAndReconciliationTests about who a principal is
// at the moment, and not who it was presented as.

// asAdmin makes the desk's principal admin-1, with the roles that it presents,
// and its call one on somebody else's order.
func (d *seedDesk) asAdmin(name string, presented ...string) *seedDesk {
	d.actor = toolresult.Principal{TenantID: "tenant-a", SubjectID: "admin-1", Roles: presented}
	d.call = named(seedCall("ORDER-8", "duplicate"), "admin-"+name)
	return d
}

func admin(roles ...string) toolresult.Principal {
	return toolresult.Principal{TenantID: "tenant-a", SubjectID: "admin-1", Roles: roles}
}

// known is a resolver that knows the principals of a list, as it is at the time
// of each lookup.
func known(list *[]toolresult.Principal) deskOption {
	return withResolver(func(_ context.Context, tenantID, subjectID string) (*toolresult.Principal, error) {
		for _, p := range *list {
			if p.TenantID == tenantID && p.SubjectID == subjectID {
				return &p, nil
			}
		}
		return nil, nil
	})
}

func presentedRolesAreNotTrusted(t *testing.T, d *seedDesk) {
	d.asAdmin("default", refunds.RoleSupportAdmin)
	wantCode(t, toolresult.NotFound, d.dispatch(alive))
	wantEqual(t, "operations", int64(0), d.counts().Operations)
}

func currentRolesAllowWriteAndDelivery(t *testing.T, d *seedDesk) {
	d = d.another(known(&[]toolresult.Principal{admin(refunds.RoleSupportAdmin)})).asAdmin("current")
	wantCode(t, toolresult.OK, d.dispatch(alive))
	wantEqual(t, "receipts", int64(1), d.counts().DownstreamReceipts)
}

func reservationRechecksPrincipal(t *testing.T, d *seedDesk) {
	lookups := 0
	d = d.another(withResolver(func(_ context.Context, tenantID, subjectID string) (*toolresult.Principal, error) {
		p := toolresult.Principal{TenantID: tenantID, SubjectID: subjectID}
		if lookups++; lookups == 1 {
			p.Roles = []string{refunds.RoleSupportAdmin}
		}
		return &p, nil
	})).asAdmin("reservation-revoked")
	wantCode(t, toolresult.NotFound, d.dispatch(alive))
	wantEqual(t, "lookups", 2, lookups)
	wantEqual(t, "operations", int64(0), d.counts().Operations)
}

func workerRechecksPrincipal(t *testing.T, d *seedDesk) {
	principals := []toolresult.Principal{admin(refunds.RoleSupportAdmin)}
	d = d.another(known(&principals)).asAdmin("revoked")
	ref := d.ref(d.dispatch(drill.AfterIntentCommit))
	principals[0] = admin()
	d.setTime(start + 1)
	wantEqual(t, "outcome", toolruntime.AuthorizationDenied, d.process(ref, "worker-revoked", nil))
	wantEqual(t, "receipts", int64(0), d.counts().DownstreamReceipts)
}
