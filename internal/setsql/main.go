// Setsql writes the statements with which PostgreSQL stores many operations at once, from
// the columns of the tables: `make generate` runs it before sqlc does.
package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/toolruntime/toolruntime-go/internal/tables"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: setsql FILE (- is the standard output)")
		os.Exit(2)
	}
	text := head + reserve() + single(reserve()) + move() + single(move())
	if os.Args[1] == "-" {
		fmt.Print(text)
		return
	}
	if err := os.WriteFile(os.Args[1], []byte(text), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const head = `-- Written by internal/setsql from the columns of the tables. DO NOT EDIT.
--
-- Each statement stores many operations, and answers for each: what cannot be stored of
-- one is filtered, and keeps nothing of another from being stored. Every reason for which
-- it may store something is in its own WHERE, or a unique index, so READ COMMITTED is
-- enough. The parameters are the texts of arrays, of one length, and the search_path for
-- which the statement is: in a session with another it does nothing. What is called is
-- qualified, and given the very types that the server's function takes: nobody's fits
-- better. What is LATERAL is looked up call by call, however large the tables have grown
-- since the server has made its plan. They are :exec because of what is generated only
-- their text and the order of their parameters are used.

`

// An array is a parameter with a value of each call.
type array struct{ name, kind string }

var arrayTypes = map[tables.Kind]string{tables.Text: "TEXT", tables.Integer: "BIGINT", tables.Blob: "BYTEA",
	tables.NullText: "TEXT", tables.NullInteger: "BIGINT"}

// arrays are the columns of a table, each under a prefix.
func arrays(prefix, table string, columns func(string) bool) (all []array) {
	for _, c := range tables.All[table] {
		if columns == nil || columns(c.Name) {
			all = append(all, array{prefix + c.Name, arrayTypes[c.Kind]})
		}
	}
	return all
}

// calls is the table of the calls.
func calls(parameters ...[]array) string {
	var b strings.Builder
	b.WriteString("    SELECT\n")
	for _, group := range parameters {
		for _, a := range group {
			fmt.Fprintf(&b, "        pg_catalog.unnest(CAST(CAST(@%s AS TEXT) AS %s[])) AS %s,\n", a.name, a.kind, a.name)
		}
	}
	b.WriteString("        pg_catalog.generate_series(CAST(1 AS BIGINT), CAST(@calls AS BIGINT)) AS place")
	return b.String()
}

var (
	array1    = regexp.MustCompile(`(?m)^ +pg_catalog\.unnest\(CAST\(CAST\(@(\w+) AS TEXT\) AS (\w+)\[\]\)\) AS \w+,\n`)
	series    = regexp.MustCompile(`pg_catalog\.generate_series\(CAST\(1 AS BIGINT\), CAST\(@calls AS BIGINT\)\)`)
	reference = regexp.MustCompile(`\b(?:call|judged|free|held)\.([a-z]_\w+|valid_\w+)`)
	comment   = regexp.MustCompile(`(?s)^-- name: (\w+)Many :exec\n.*?\nWITH`)
)

// single makes a statement for one call of one for many: its parameters are the values
// themselves, as texts. Arrays of one cost the server as much as all the rest does.
func single(many string) string {
	kinds := map[string]string{}
	for _, m := range array1.FindAllStringSubmatch(many, -1) {
		kinds[m[1]] = m[2]
	}
	text := series.ReplaceAllString(array1.ReplaceAllString(many, ""), "CAST(@calls AS BIGINT)")
	text = reference.ReplaceAllStringFunc(text, func(ref string) string {
		_, name, _ := strings.Cut(ref, ".")
		return "CAST(CAST(@" + name + " AS TEXT) AS " + kinds[name] + ")"
	})
	return comment.ReplaceAllString(text, "-- name: ${1}One :exec\n-- ${1}One is ${1}Many for a single call.\nWITH")
}

// names are the names of columns, each made by name.
func names(table string, columns func(string) bool, name func(column string) string) string {
	var all []string
	for _, c := range tables.All[table] {
		if columns == nil || columns(c.Name) {
			all = append(all, name(c.Name))
		}
	}
	var b strings.Builder
	for i, n := range all {
		switch {
		case i == 0:
		case i%6 == 0:
			b.WriteString(",\n        ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(n)
	}
	return b.String()
}

func as(prefix string) func(string) string {
	return func(column string) string { return prefix + column }
}

func itself(column string) string { return column }

// equal compares columns of a table with those of the calls.
func equal(table, prefix string, columns ...string) string {
	var all []string
	for _, c := range columns {
		all = append(all, fmt.Sprintf("%s.%s = call.%s%s", table, c, prefix, c))
	}
	return strings.Join(all, " AND ")
}

// exists looks for a row by a key. The OFFSET keeps the server from reading the whole table
// instead, once for all calls.
func exists(table string, conditions ...string) string {
	return "EXISTS (SELECT 1 FROM " + table + " WHERE " + strings.Join(conditions, " AND ") + " OFFSET 0)"
}

// unchanged compares every column of a table with the one that was read.
func unchanged(table, prefix string) string {
	var all []string
	for _, c := range tables.All[table] {
		switch c.Kind {
		case tables.NullText, tables.NullInteger:
			all = append(all, fmt.Sprintf("%s.%s IS NOT DISTINCT FROM call.%s%s", table, c.Name, prefix, c.Name))
		default:
			all = append(all, fmt.Sprintf("%s.%s = call.%s%s", table, c.Name, prefix, c.Name))
		}
	}
	return strings.Join(all, "\n            AND ")
}

var (
	scope    = []string{"tenant_id", "subject_id", "tool_name", "idempotency_key"}
	identity = []string{"tenant_id", "subject_id", "provider", "api_family", "response_id", "call_id"}
)

const clock = "EXTRACT(EPOCH FROM pg_catalog.clock_timestamp())"

const aboutReserve = `-- name: ReserveMany :exec
-- ReserveMany takes the scopes of approved intents, each with its event and the identity
-- of the call that brought it. For each it says why it was not to be stored, or '', whether
-- it was, and a key for the next operation.
--
-- Of two that want one scope, the second waits at the unique index for the first, and then
-- inserts nothing. A call identity that is bound to the same is written again, because an
-- intent rests on it now, and a pruning that does not see that yet must not remove it; one
-- that is bound to something else lets nothing be inserted. What is pruned meanwhile is
-- either still there in the statement's snapshot, or has its tombstone in it; what is
-- inserted meanwhile is too young to be pruned. A paused tool takes nothing that an attempt
-- would follow at once: what waits for a worker may wait.
--
-- The rows are for a time of the server's clock. Where that has passed while the statement
-- waited, an event without an id fails it.
`

func reserve() string {
	return aboutReserve + `WITH call AS (
` + calls(arrays("o_", "operations", nil), arrays("e_", "outbox", nil), arrays("b_", "call_bindings", nil),
		[]array{{"valid_from", "BIGINT"}, {"valid_until", "BIGINT"}}) + `
), judged AS (
    SELECT call.*, CASE
        WHEN ` + clock + ` < call.valid_from OR ` + clock + ` >= call.valid_until THEN 'late'
        WHEN ` + exists("call_bindings", equal("call_bindings", "b_", identity...), "call_bindings.fingerprint_sha256 <> call.b_fingerprint_sha256") + ` THEN 'bound'
        WHEN ` + exists("tombstones", equal("tombstones", "o_", scope...)) + `
            OR ` + exists("operations", equal("operations", "o_", scope...)) + ` THEN 'taken'
        WHEN call.e_state <> 'pending'
            AND ` + exists("paused_tools", "paused_tools.tool_name = call.o_tool_name") + ` THEN 'paused'
        ELSE '' END AS why
    FROM call
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
), free AS (
    SELECT * FROM judged WHERE judged.why = ''
), bound AS (
    INSERT INTO call_bindings (
        ` + names("call_bindings", nil, itself) + `
    )
    SELECT
        ` + names("call_bindings", nil, as("free.b_")) + `
    FROM free
    ON CONFLICT (tenant_id, subject_id, provider, api_family, response_id, call_id)
    DO UPDATE SET status_ref = call_bindings.status_ref
    WHERE call_bindings.fingerprint_sha256 = EXCLUDED.fingerprint_sha256
    RETURNING ` + names("call_bindings", func(c string) bool { return slices.Contains(identity, c) }, as("call_bindings.")) + `
), taken AS (
    INSERT INTO operations (
        ` + names("operations", nil, itself) + `
    )
    SELECT
        ` + names("operations", nil, as("free.o_")) + `
    FROM free JOIN bound ON ` + strings.ReplaceAll(equal("bound", "b_", identity...), "call.b_", "free.b_") + `
    ON CONFLICT DO NOTHING
    RETURNING operations.operation_pk
), event AS (
    INSERT INTO outbox (
        ` + names("outbox", nil, itself) + `
    )
    SELECT
        ` + names("outbox", nil, func(c string) string {
		if c == "event_id" {
			return "CASE WHEN " + clock + " < free.valid_until THEN free.e_event_id END"
		}
		return "free.e_" + c
	}) + `
    FROM free JOIN taken ON taken.operation_pk = free.o_operation_pk
)
SELECT judged.place, judged.why, judged.o_operation_pk IN (SELECT taken.operation_pk FROM taken) AS stored,
    pg_catalog.nextval(CAST(pg_catalog.pg_get_serial_sequence('operations', 'operation_pk') AS regclass)) AS next_key
FROM judged;

`
}

func set(table, prefix string, columns func(string) bool) string {
	return names(table, columns, func(c string) string { return c + " = " + prefix + c })
}

const aboutMove = `-- name: MoveMany :exec
-- MoveMany moves operations and their events from the rows that were read, in every column,
-- to new ones. With a move go how an attempt has ended, a receipt as observed and as
-- accepted, and a place among the endings, where there are such. For each it says whether
-- it was stored.
--
-- The event is the gate: it is locked first. Where somebody else moves it meanwhile (the
-- lease has run out), the lock waits for him and the WHERE is held against the row as he
-- left it: only one of the two gets it. Nobody moves the two rows afterwards. A receipt
-- whose ids the ledger has already lets nothing be stored; one that comes at the very same
-- time fails the statement.
`

func move() string {
	return aboutMove + `WITH call AS (
` + calls(arrays("f_", "operations", nil), arrays("g_", "outbox", nil),
		arrays("o_", "operations", tables.ChangedOperation),
		arrays("e_", "outbox", tables.ChangedEvent),
		arrays("a_", "attempts", nil), arrays("d_", "downstream_receipts", tables.Given),
		arrays("l_", "local_receipts", nil), arrays("n_", "endings", tables.Given)) + `
), held AS (
    SELECT call.* FROM call, LATERAL (
        SELECT outbox.operation_pk FROM outbox
        WHERE ` + unchanged("outbox", "g_") + `
        FOR NO KEY UPDATE
    ) AS event, LATERAL (
        SELECT operations.operation_pk FROM operations
        WHERE event.operation_pk = operations.operation_pk
            AND ` + unchanged("operations", "f_") + `
        FOR NO KEY UPDATE
    ) AS operation
    WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT)
        AND (call.d_receipt_id IS NULL OR NOT (
            ` + exists("downstream_receipts", equal("downstream_receipts", "d_", scope...)) + `
            OR ` + exists("downstream_receipts", equal("downstream_receipts", "d_", "tenant_id", "tool_name", "receipt_id")) + `
            OR ` + exists("downstream_receipts", equal("downstream_receipts", "d_", "tenant_id", "tool_name", "downstream_request_id")) + `
            OR ` + exists("local_receipts", "local_receipts.operation_pk = call.l_operation_pk") + `
        ))
), moved AS (
    UPDATE outbox
    SET ` + set("outbox", "held.e_", tables.ChangedEvent) + `
    FROM held WHERE outbox.operation_pk = held.g_operation_pk
), ended AS (
    UPDATE operations
    SET ` + set("operations", "held.o_", tables.ChangedOperation) + `
    FROM held WHERE operations.operation_pk = held.f_operation_pk AND held.o_row_digest <> held.f_row_digest
), tried AS (
    INSERT INTO attempts (` + names("attempts", nil, itself) + `)
    SELECT ` + names("attempts", nil, as("held.a_")) + `
    FROM held WHERE held.a_operation_pk IS NOT NULL
    ON CONFLICT DO NOTHING
), observed AS (
    INSERT INTO downstream_receipts (
        ` + names("downstream_receipts", tables.Given, itself) + `
    )
    SELECT
        ` + names("downstream_receipts", tables.Given, as("held.d_")) + `
    FROM held WHERE held.d_receipt_id IS NOT NULL
), accepted AS (
    INSERT INTO local_receipts (
        ` + names("local_receipts", nil, itself) + `
    )
    SELECT
        ` + names("local_receipts", nil, as("held.l_")) + `
    FROM held WHERE held.l_operation_pk IS NOT NULL
), announced AS (
    INSERT INTO endings (` + names("endings", tables.Given, itself) + `)
    SELECT ` + names("endings", tables.Given, as("held.n_")) + `
    FROM held WHERE held.n_status_ref IS NOT NULL
)
SELECT call.place, call.place IN (SELECT held.place FROM held) AS stored
FROM call WHERE pg_catalog.current_setting('search_path') = CAST(@search_path AS TEXT);
`
}
