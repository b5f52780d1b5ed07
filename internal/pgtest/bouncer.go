package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var errNoBouncer = errors.New("PgBouncer is not installed")

// A Bouncer is a PgBouncer in front of a server.
type Bouncer struct {
	t      testing.TB
	folder string
	server *pgconn.Config
	path   string // the search_path
}

// NewBouncer starts one that is as it comes, but for settings of the form
// "name = value", in front of the server that address names. Where PgBouncer is not
// installed the test is skipped, or fails if a server is required.
func NewBouncer(t testing.TB, address string, settings ...string) *Bouncer {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(path); err != nil {
			Missing(t, errNoBouncer)
		}
	}
	c, err := prepare()
	if err != nil {
		Missing(t, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.folder) })
	server, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bouncer{t: t, folder: c.folder, server: server, path: server.RuntimeParams["search_path"]}
	b.configure(settings...)
	cmd := c.command(path, filepath.Join(c.folder, "ini"))
	log, err := os.Create(filepath.Join(c.folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		// The socket is there before somebody listens on it.
		if conn, err := net.Dial("unix", filepath.Join(c.folder, ".s.PGSQL.6432")); err == nil {
			_ = conn.Close()
			return b
		}
		if time.Since(begun) > 30*time.Second {
			text, _ := os.ReadFile(filepath.Join(c.folder, "log"))
			t.Fatalf("pgtest: PgBouncer does not answer:\n%s", text)
		}
	}
}

func (b *Bouncer) configure(settings ...string) {
	b.t.Helper()
	login := fmt.Sprintf("host=%s port=%d user=%s", b.server.Host, b.server.Port, b.server.User)
	if b.server.Password != "" {
		login += " password=" + b.server.Password
	}
	text := fmt.Sprintf("[databases]\n* = %s\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 6432\nauth_type = any\nadmin_users = admin\n",
		login, b.folder)
	for _, s := range settings {
		text += s + "\n"
	}
	if err := os.WriteFile(filepath.Join(b.folder, "ini"), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Reconfigure changes the settings of one that is running. It returns when they hold.
func (b *Bouncer) Reconfigure(settings ...string) {
	b.t.Helper()
	b.configure(settings...)
	db := Open(b.t, b.url("pgbouncer", "admin")+"&default_query_exec_mode=simple_protocol")
	defer db.Close()
	if _, err := db.Exec("RELOAD"); err != nil {
		b.t.Fatal(err)
	}
}

// URL is how clients reach the server through it.
func (b *Bouncer) URL() string {
	address := b.url(b.server.Database, b.server.User)
	if b.path != "" {
		address = With(address, "search_path", b.path)
	}
	return address
}

func (b *Bouncer) url(database, user string) string {
	query := url.Values{"host": {b.folder}, "port": {"6432"}, "sslmode": {"disable"}}
	return "postgres://" + user + "@/" + database + "?" + query.Encode()
}
