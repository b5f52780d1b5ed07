package main

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettings reads in the source of package sqlitestore how the ledger's
// connections are set, and fails when the floor's are set otherwise.
func TestSettings(t *testing.T) {
	source, err := os.ReadFile("../toolruntime/sqlitestore/connect.go")
	if err != nil {
		t.Fatal(err)
	}
	function := func(name string) string {
		_, rest, ok := strings.Cut(string(source), "func "+name+"(")
		if !ok {
			t.Fatalf("package sqlitestore has no function %s: where are its settings?", name)
		}
		body, _, _ := strings.Cut(rest, "\n}")
		return body
	}
	pair := regexp.MustCompile(`"(_\w+)"(?:: \{|, )"([^"]+)"`)
	set := func(names ...string) map[string]string {
		all := map[string]string{"_busy_timeout": "5000"} // DefaultBusyTimeout, which it computes
		for _, name := range names {
			for _, m := range pair.FindAllStringSubmatch(function(name), -1) {
				all[m[1]] = m[2]
			}
		}
		return all
	}
	for _, c := range []struct{ name, floor string }{{"writerConnector", sqliteWriter}, {"readerConnector", sqliteReader}} {
		v, err := url.ParseQuery(c.floor)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for k := range v {
			got[k] = v.Get(k)
		}
		want := set(c.name, "newConnector")
		if c.name == "readerConnector" {
			want["_cache_size"] = set("writerConnector")["_cache_size"]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: ledger -, floor +\n%s", c.name, diff)
		}
	}
	_, rest, _ := strings.Cut(string(source), "const settings = `")
	pragmas, _, _ := strings.Cut(rest, "`")
	if diff := cmp.Diff(pragmas, sqlitePragma); diff != "" {
		t.Errorf("pragmas: ledger -, floor +\n%s", diff)
	}
}
