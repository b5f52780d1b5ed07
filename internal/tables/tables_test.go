package tables

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"

	"github.com/toolruntime/toolruntime-go/internal/dbgen"
)

// filled gives every column of a row a value of its own.
func filled[R any]() (row R) {
	v := reflect.ValueOf(&row).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			*f = fmt.Sprintf("text %d", i)
		case *int64:
			*f = int64(i) - 3
		case *[]byte:
			*f = []byte{byte(i)}
		case *sql.NullString:
			*f = sql.NullString{String: "", Valid: true}
		case *sql.NullInt64:
			*f = sql.NullInt64{Int64: int64(i), Valid: true}
		}
	}
	return row
}

// golden are digests of a row of zeros, which is as one from before any column was added,
// and of one that is filled. They are in ledgers, and must never change.
var golden = map[string][2]string{
	"call_bindings":         {"80a45f8543532f13eb9c651292c02e1e270330e36cad7811a3d803e7ff9aa9ae", "233307ca7a454895c6e0ea4267f7b939567ee9508577bd43ae7049fa43b42060"},
	"operations":            {"476d4a55ea4efd175922338d62b55757c362064b6b33d620c9b8bee393f7550f", "a0d118340070e4d7aa1cc0dd330b28cf69a8f251cd4f541757cb61766dd815a6"},
	"outbox":                {"56dd27e062cbae760c431077cc05adbf3066216a79132feb2be2c8ab44a2a437", "3879832a451a0535fcacda400378ed3e1a7e1da11ea60a11d928c162fc5a15a9"},
	"attempts":              {"2aa5333e17a4bc986fe7a646095758da82df8658864d7d8c6076d6362a06a231", "928b28b85b7060a839e6aae7ff0b1908124092397d68b61136da5eaef85b7161"},
	"downstream_receipts":   {"c3b1a1d4e97c58b553c7a6a4a721d7fdb60870b587a1fa1eff44aafc410c1b3e", "fecef92ee070a086bd500cccbc8575862878e85d462c584089eb3682938f89d9"},
	"local_receipts":        {"506bdb5b671c8029e7fb0c024d8b74c1ea79fce8c0facef050edf933393c4ad8", "6f02d3cc228112d4e4c5e106791f4c917bdf538b354c5be2d7b775bfdf9ed553"},
	"rejected_receipts":     {"3472ac73dade84c4afc6a63c160399f1b2e03e3b2be32a064f8a8bf5b2d207b6", "30481eee7a92679232fcf76a727851ff7a86c49fdcbafb159ab62f1ac9c720f7"},
	"resolutions":           {"773ee268b26345f348762a4bdb0ab5dc9f67d5e7142a4a3f2822095c0f5cfcfa", "b03bc8c23346d35b4a93e27506303463f6d28ed1ec3b95d3f8386a11eeebc5c2"},
	"endings":               {"62662020414b08542965fb2353fbd008c474181c2ebfd8c7cbbe887ac6e8c992", "420875e45eb1652a716368ccb10aaa4de02cdd2979c2edfab419c508ac0b3ce8"},
	"paused_tools":          {"b57616d09b244a2861240a0a0d0a97c0f089b795f4a60520727281f0aa8ef91f", "8cd907dfb4a6d1ce01791acad9baba1e689bcbdd932f8ef89f0bef3988b41aea"},
	"past_pauses":           {"0159629d7a230e5d5dc2106ea68401b842fe0fa761a482eb3813bc9585b35a5d", "92e7b0fb025a77fafe39286e95785590b335b9a1b045db2e0455bd0c3b483cf6"},
	"tombstones":            {"d2c20c63519c3b7df53f2a1692576d2267569521a1fed1dfedf82af92d290267", "ecc59ec73bc7aea066aa98fffdcf6eb60010edbc9b168fc4a8808f743d587fa5"},
	"tombstone_resolutions": {"6aea5fc206ad4b12fb3ef36e2337e48af7b89de85ff9cc59f937597a6058c971", "cc6f4eb701fbe138e58df6c67c9ca0bc589eaf2a56a36b6d6fb8df9344c6b7b1"},
}

func TestDigests(t *testing.T) {
	seen := 0
	check := func(name string, zero, full []byte) {
		seen++
		if got := [2]string{hex.EncodeToString(zero), hex.EncodeToString(full)}; got != golden[name] {
			t.Errorf("%s: digests %q, want %q", name, got, golden[name])
		}
	}
	checkTable(check, CallBindings)
	checkTable(check, Operations)
	checkTable(check, Outbox)
	checkTable(check, Attempts)
	checkTable(check, DownstreamReceipts)
	checkTable(check, LocalReceipts)
	checkTable(check, RejectedReceipts)
	checkTable(check, Resolutions)
	checkTable(check, Endings)
	checkTable(check, PausedTools)
	checkTable(check, PastPauses)
	checkTable(check, Tombstones)
	checkTable(check, TombstoneResolutions)
	if seen != len(golden) {
		t.Errorf("%d tables were looked at of %d", seen, len(golden))
	}
}

func checkTable[R any](check func(name string, zero, full []byte), table *Table[R]) {
	var zero R
	full := filled[R]()
	check(table.Name, table.Digest(&zero), table.Digest(&full))
}

// TestEveryColumn changes each column of a row, and wants the digest to change with all
// but those that the package page names.
func TestEveryColumn(t *testing.T) {
	uncovered := map[string]bool{"operations.operation_pk": true, "downstream_receipts.downstream_pk": true, "endings.ending_pk": true,
		"outbox.lane": true, "outbox.next_attempt_at": true} // of an event that is not pending
	changes(t, Operations, uncovered)
	changes(t, Outbox, uncovered)
	changes(t, Attempts, uncovered)
	changes(t, DownstreamReceipts, uncovered)
	changes(t, Endings, uncovered)
	changes(t, Tombstones, uncovered)
	waiting := dbgen.Outbox{State: "pending", NextAttemptAt: 7}
	was := Outbox.Digest(&waiting)
	if waiting.NextAttemptAt++; string(Outbox.Digest(&waiting)) == string(was) {
		t.Error("when a waiting event is due is not covered")
	}
}

func changes[R any](t *testing.T, table *Table[R], uncovered map[string]bool) {
	t.Helper()
	row := filled[R]()
	table.Seal(&row)
	if !table.Intact(&row) {
		t.Fatalf("%s: a row that was sealed is not intact", table.Name)
	}
	for i, c := range table.Columns {
		changed := row
		switch f := reflect.ValueOf(&changed).Elem().Field(i).Addr().Interface().(type) {
		case *string:
			*f += "!"
		case *int64:
			*f += 1000
		case *[]byte:
			*f = append([]byte{1}, *f...)
		case *sql.NullString:
			f.Valid = false
		case *sql.NullInt64:
			f.Valid = false
		}
		if name := table.Name + "." + c.Name; table.Intact(&changed) != uncovered[name] {
			t.Errorf("%s: covered is %t", name, uncovered[name])
		}
	}
}

func TestNames(t *testing.T) {
	for field, want := range map[string]string{"OperationPK": "operation_pk", "RequestSha256": "request_sha256", "ArgumentsJSON": "arguments_json",
		"FirstAPIFamily": "first_api_family", "APIFamily": "api_family", "Seq": "seq", "ID": "id"} {
		if got := snake(field); got != want {
			t.Errorf("snake(%q) = %q, want %q", field, got, want)
		}
	}
}
