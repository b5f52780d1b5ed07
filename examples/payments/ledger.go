package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// A Payment is what is paid.
type Payment struct {
	Account     string `json:"account"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
}

// An entry is an effect that has happened: one row, committed at once with the
// key by which a repetition is recognised. So there is no instant at which a
// crash could keep the one and lose the other.
type entry struct {
	id int64
	Payment
}

func (e entry) paymentID() string { return fmt.Sprintf("pay_%d", e.id) }
func (e entry) requestID() string { return fmt.Sprintf("req_%d", e.id) }

// A ledger is the server's durable memory. What it has returned has been
// flushed to the disk.
type ledger struct{ db *sql.DB }

const ledgerSchema = `
CREATE TABLE IF NOT EXISTS effects (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	key TEXT NOT NULL,
	account TEXT NOT NULL,
	amount_cents INTEGER NOT NULL,
	currency TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS effects_key ON effects (key, id);`

func openLedger(path string) (*ledger, error) {
	options := url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"}, "_busy_timeout": {"10000"}}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	// One connection: payments queue here and not for SQLite's lock.
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(ledgerSchema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ledger{db}, nil
}

func (l *ledger) close() error { return l.db.Close() }

// errMismatch: the key was used with another payment.
var errMismatch = errors.New("payments: the key was used with another payment")

// pay has the effect, or finds the one that the key has had. Without dedup it
// has one each time.
func (l *ledger) pay(ctx context.Context, key string, p Payment, dedup bool) (e entry, replayed bool, err error) {
	tx, err := l.db.BeginTx(ctx, nil) // takes the write lock: nobody comes between look and insert
	if err != nil {
		return entry{}, false, err
	}
	defer tx.Rollback()
	if dedup {
		first, ok, err := firstEntry(ctx, tx, key)
		switch {
		case err != nil:
			return entry{}, false, err
		case ok && first.Payment != p:
			return entry{}, false, errMismatch
		case ok:
			return first, true, nil
		}
	}
	row, err := tx.ExecContext(ctx, "INSERT INTO effects (key, account, amount_cents, currency) VALUES (?, ?, ?, ?)",
		key, p.Account, p.AmountCents, p.Currency)
	if err != nil {
		return entry{}, false, err
	}
	id, err := row.LastInsertId()
	if err != nil {
		return entry{}, false, err
	}
	return entry{id, p}, false, tx.Commit()
}

// find returns the first effect of a key.
func (l *ledger) find(ctx context.Context, key string) (entry, bool, error) {
	return firstEntry(ctx, l.db, key)
}

func firstEntry(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, key string) (entry, bool, error) {
	var e entry
	err := q.QueryRowContext(ctx, "SELECT id, account, amount_cents, currency FROM effects WHERE key = ? ORDER BY id LIMIT 1", key).
		Scan(&e.id, &e.Account, &e.AmountCents, &e.Currency)
	if errors.Is(err, sql.ErrNoRows) {
		return entry{}, false, nil
	}
	return e, err == nil, err
}

// effects counts the effects of each key.
func (l *ledger) effects(ctx context.Context) (map[string]int, error) {
	rows, err := l.db.QueryContext(ctx, "SELECT key, count(*) FROM effects GROUP BY key")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var key string
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			return nil, err
		}
		counts[key] = n
	}
	return counts, rows.Err()
}
