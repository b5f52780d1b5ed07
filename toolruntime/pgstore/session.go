package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/internal/pgquery"
)

// A SessionError says that a connection to the server does not keep what the
// store rests on. It matches toolruntime.ErrCannotOpen.
type SessionError struct {
	Lost  string // what it does not keep: "search_path", "its session", …
	Taker string // who took it away: "a pooler between this process and the server", "the server"
	Hint  string // what to do
}

func (e *SessionError) Error() string {
	return fmt.Sprintf("%s took away %s from a connection: %s", e.Taker, e.Lost, e.Hint)
}

// Is matches ErrCannotOpen, and ErrDatabase.
func (e *SessionError) Is(target error) bool {
	return target == engine.ErrCannotOpen || target == engine.ErrDatabase
}

// startup are the parameters that can only be given when a connection is made. All
// others are set when it is there, because a pooler refuses to pass them on.
var startup = map[string]bool{"application_name": true, "client_encoding": true, "options": true, "replication": true}

// defaults are what every session has, whatever the server, the database and the role
// say, where the URL does not say something else.
func defaults(o Options) map[string]string {
	return map[string]string{
		"application_name":                    "toolruntime",
		"statement_timeout":                   milliseconds(o.StatementTimeout),
		"lock_timeout":                        milliseconds(o.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
		// Not before PostgreSQL 17. An audit takes as long as it takes, and so does a
		// commit that waits for a standby.
		transactionTimeout: "0",
	}
}

const transactionTimeout = "transaction_timeout"

// fixed are the settings that nobody may change. Left as it is is
// default_transaction_read_only: with it an operator may have frozen the database.
var fixed = map[string]string{
	// A statement that is a transaction of its own has every reason for which it may
	// write in its WHERE; every other transaction says what it needs.
	"default_transaction_isolation":  "read committed",
	"default_transaction_deferrable": "off",
	"client_encoding":                "UTF8",
	"standard_conforming_strings":    "on",
	"bytea_output":                   "hex",
	// The audit reads what the server says of its own schema.
	"quote_all_identifiers": "off",
}

// required are settings that only a superuser may change, so that they are read and
// not set. With others than these the server does not check that a row has the one
// that it names, or takes a damaged page for an empty one.
var required = map[string]string{
	"session_replication_role": "origin",
	"zero_damaged_pages":       "off",
}

// apply sets the settings, and raises synchronous_commit where it is off: what the
// server acknowledges must be on its disk. A setting that the server does not know is
// left out, if it may be missing; an unknown one of the URL is an error. Nothing here is looked up by the search_path, which
// is set here: every name is qualified, and the unnest of several arrays is syntax.
const apply = `SELECT s.name, pg_catalog.set_config(s.name, s.value, false), pg_catalog.pg_backend_pid()::pg_catalog.text
FROM unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) AS s(name, value)
WHERE s.name OPERATOR(pg_catalog.<>) '` + transactionTimeout + `' OR pg_catalog.current_setting(s.name, true) IS NOT NULL
UNION ALL
SELECT 'synchronous_commit', pg_catalog.set_config('synchronous_commit', 'on', false), pg_catalog.pg_backend_pid()::pg_catalog.text
WHERE $3::pg_catalog.bool AND pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off'`

// confirm reads the settings back, in a transaction of its own: a pooler may have
// given that to another session. The last row is serverRun, and the server's time.
const confirm = `SELECT s.name, pg_catalog.current_setting(s.name), pg_catalog.pg_backend_pid()::pg_catalog.text
FROM unnest($1::pg_catalog.text[]) AS s(name)
UNION ALL
SELECT '', ` + serverRun + `, CAST(` + serverTime + ` AS pg_catalog.text)`

// untilSet is the statement timeout until the settings are there. The default that the
// server has for the role may be too short even to find them out.
var untilSet = milliseconds(connectTimeout)

// settle makes a new connection what the store rests on.
func (e *pgEngine) settle(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := conn.PgConn().Exec(ctx, "SET statement_timeout = "+untilSet).ReadAll(); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(e.settings))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = e.settings[name]
	}
	_, given := e.settings["synchronous_commit"]
	set, err := ask(ctx, conn, apply, pgquery.Array(names), pgquery.Array(values), fmt.Sprint(!given))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		set = append(set, []string{name, required[name], set[0][2]})
	}
	names = names[:0]
	for _, row := range set {
		names = append(names, row[0])
	}
	sent := time.Now()
	kept, err := ask(ctx, conn, confirm, pgquery.Array(names))
	if err != nil {
		return err
	}
	if len(kept) != len(set)+1 {
		return &SessionError{"answers", "something between this process and the server", directly}
	}
	for i, row := range set {
		switch {
		case kept[i][2] != row[2]:
			return poolsTransactions
		case kept[i][1] != row[1] && required[row[0]] != "":
			return &SessionError{row[0] + " = " + row[1], "the server, the database or the role",
				"reset it there, with ALTER ROLE or ALTER DATABASE, or in the URL"}
		case kept[i][1] != row[1]:
			return &SessionError{"the setting " + row[0], taker(conn, row[2]), directly}
		}
	}
	conn.PgConn().CustomData()[runKey] = kept[len(set)][1]
	e.clock.hear([]byte(kept[len(set)][2]), sent)
	return nil
}

const directly = "connect to the server itself, or to a pooler that gives each client a session of its own"

var poolsTransactions = &SessionError{"its session", "a pooler between this process and the server",
	"it pools transactions or statements; make it pool sessions for this database (PgBouncer: pool_mode = session), or connect past it"}

// taker says who may have changed a setting of a connection. A pooler answers for
// the server, but does not have its number for the session.
func taker(conn *pgx.Conn, backend string) string {
	if pooled(conn, backend) {
		return "a pooler between this process and the server"
	}
	return "the server"
}

// pooled reports whether the session that answers is not the one that the
// connection was made with.
func pooled(conn *pgx.Conn, backend string) bool { return fmt.Sprint(conn.PgConn().PID()) != backend }

// ask runs one statement without leaving anything prepared on the server.
func ask(ctx context.Context, conn *pgx.Conn, query string, args ...string) (rows [][]string, err error) {
	params := make([][]byte, len(args))
	for i, arg := range args {
		params[i] = []byte(arg)
	}
	result := conn.PgConn().ExecParams(ctx, query, params, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	for _, row := range result.Rows {
		texts := make([]string, len(row))
		for i, v := range row {
			texts[i] = string(v)
		}
		rows = append(rows, texts)
	}
	return rows, nil
}

// rounds is how often two connections try whether they share sessions.
const rounds = 4

// unpooled makes sure that each connection has a session to itself. What PostgreSQL
// says when a connection is made is the number of the session, so where nobody stands
// between, one question is enough. Where somebody does, a second connection is made:
// one that pools transactions gives it the session of the first, or the first another
// one while the second is in a transaction. Nothing is set before that is known, because
// it would be set for the clients of others.
func unpooled(ctx context.Context, config *pgx.ConnConfig, first *pgx.Conn) error {
	number, err := numberOf(ctx, first)
	if err != nil || !pooled(first, number) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	second, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer second.Close(context.WithoutCancel(ctx))
	if other, err := numberOf(ctx, second); err != nil || other == number {
		return cmp.Or(err, error(poolsTransactions))
	}
	for range rounds {
		if _, err := second.PgConn().Exec(ctx, "BEGIN").ReadAll(); err != nil {
			if code(err) != "" {
				return poolsTransactions // statements, that is: it takes no transactions
			}
			return err
		}
		other, err := numberOf(ctx, second)
		if err != nil {
			return err
		}
		again, err := numberOf(ctx, first)
		if err == nil {
			_, err = second.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		}
		if err != nil {
			return err
		}
		if other == number || again != number {
			return poolsTransactions
		}
		// One that takes its sessions in turns is put out of step.
		if again, err = numberOf(ctx, first); err != nil {
			return err
		}
		if again != number {
			return poolsTransactions
		}
	}
	return nil
}

// numberOf is one message, so that the setting lasts no longer than the question.
func numberOf(ctx context.Context, conn *pgx.Conn) (string, error) {
	results, err := conn.PgConn().Exec(ctx, "SET LOCAL statement_timeout = "+untilSet+"; SELECT pg_catalog.pg_backend_pid()").ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[1].Rows[0][0]), nil
}

// refusedAtOnce names what a pooler does not let through when a connection is made.
func refusedAtOnce(err error, config *pgx.ConnConfig) error {
	_, given := config.RuntimeParams["options"]
	if given && code(err) == protocolViolation {
		return &SessionError{"the parameter options", "a pooler between this process and the server",
			"give what it sets as parameters of the URL of their own, or make the pooler pass it on"}
	}
	return err
}

// protocolViolation is the code with which a pooler refuses.
const protocolViolation = "08P01"
