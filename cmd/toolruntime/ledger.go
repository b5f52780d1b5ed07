package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/refunds"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/pgstore"
)

// keyword is how an address in libpq's other form begins.
var keyword = regexp.MustCompile(`^\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode|target_session_attrs|options|application_name|connect_timeout)\s*=`)

// isPostgres tells the address of a PostgreSQL database from the path of a file.
// A file whose name looks like an address is written with ./ before it.
func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") || keyword.MatchString(address)
}

// An access is what a command wants of a ledger.
type access int

const (
	mayMake access = iota // make it where there is none
	mustBe                // there must be one: a gate that makes what it is to look at passes on nothing
	toLook                // there must be one, and it is not changed
)

func openStore(ctx context.Context, address string, a access) (*toolruntime.Store, error) {
	if isPostgres(address) {
		return pgstore.Open(ctx, address, nil)
	}
	return openFile(ctx, address, a)
}

// A desk is the example's runtime over an open ledger, with a clock that a case
// sets.
type desk struct {
	store *toolruntime.Store
	rt    *toolruntime.Runtime
	tools toolset
	now   func() time.Time
}

func (d *desk) setTime(unix int64) {
	d.now = func() time.Time { return time.Unix(unix, 0) }
}

func openDesk(ctx context.Context, o *options, a access) (*desk, error) {
	d := &desk{now: time.Now}
	var err error
	if d.tools, err = readTools(o.tools); err != nil {
		return nil, err
	}
	if d.store, err = openStore(ctx, o.db, a); err != nil {
		return nil, err
	}
	orders := refunds.NewOrders()
	examples := orders.Tools()
	d.rt, err = toolruntime.New(d.store, &toolruntime.Options{
		Authorizer: orders.Authorize,
		Approvers:  d.tools.approvers(refunds.Approvers),
		Profiles:   d.tools.profiles,
		Now:        func() time.Time { return d.now() },
	}, d.tools.with(examples)...)
	if err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	return d, nil
}

// with opens the ledger that o names, does something, and closes the ledger.
func with(ctx context.Context, o *options, a access, do func(*desk) (bool, error)) (pass bool, err error) {
	d, err := openDesk(ctx, o, a)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.store.Close()) }()
	return do(d)
}
