package pgstore

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
	"github.com/toolruntime/toolruntime-go/internal/pgtest"
	described "github.com/toolruntime/toolruntime-go/internal/tables"
	"github.com/toolruntime/toolruntime-go/internal/verbtest"
)

// FuzzArrays: the server reads of an array what was written into it.
func FuzzArrays(f *testing.F) {
	db := pgtest.Open(f, pgtest.URL(f))
	for i, s := range verbtest.Hostile {
		f.Add(s, verbtest.Hostile[len(verbtest.Hostile)-1-i], i%3 > 0, int64(i)-3, []byte(s))
	}
	f.Fuzz(func(t *testing.T, a, b string, there bool, n int64, digest []byte) {
		if !utf8.ValidString(a+b) || !utf8.ValidString(a) || strings.ContainsRune(a+b, 0) {
			t.Skip("no text of the server")
		}
		row := dbgen.Outbox{EventID: a, LeaseOwner: sql.NullString{String: b, Valid: there}, AttemptCount: n, RowDigest: digest}
		arrays := described.Outbox.Arrays([]*dbgen.Outbox{nil, &row, &row}, func(column string) bool {
			return column == "event_id" || column == "lease_owner" || column == "attempt_count" || column == "row_digest"
		})
		rows, err := db.Query(`SELECT unnest(CAST($1 AS text[])), unnest(CAST($2 AS text[])), unnest(CAST($3 AS bigint[])), unnest(CAST($4 AS bytea[]))`,
			arrays[0], arrays[1], arrays[2], arrays[3])
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for i := 0; rows.Next(); i++ {
			var event, owner sql.NullString
			var count sql.NullInt64
			var got []byte
			if err := rows.Scan(&event, &owner, &count, &got); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if event.Valid || owner.Valid || count.Valid || got != nil {
					t.Errorf("a row that is not there: %v %v %v %v", event, owner, count, got)
				}
				continue
			}
			want := sql.NullString{}
			if there {
				want = row.LeaseOwner
			}
			if event != (sql.NullString{String: a, Valid: true}) || owner != want || count != (sql.NullInt64{Int64: n, Valid: true}) || !bytes.Equal(got, digest) || got == nil {
				t.Errorf("got %q %q %v %x", event.String, owner.String, count, got)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
