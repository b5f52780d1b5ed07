// Package pgtest gives tests a PostgreSQL server: the one that
// TOOLRUNTIME_TEST_POSTGRES names, or a private cluster in a temporary folder
// that ends with the test binary. It is for tests alone.
package pgtest

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// URLVariable names a running server.
const URLVariable = "TOOLRUNTIME_TEST_POSTGRES"

var errNoBinaries = errors.New("PostgreSQL's binaries are not installed")

var (
	shared  = sync.OnceValues(start)
	started *Cluster
	schemas atomic.Int64
)

// Main runs the tests and ends the private cluster, if one was needed.
func Main(m *testing.M) int {
	defer func() {
		if started != nil {
			started.Remove()
		}
	}()
	return m.Run()
}

// start makes the cluster that the binary's tests share. Child processes of the
// tests find it by the environment.
func start() (string, error) {
	if u := os.Getenv(URLVariable); u != "" {
		return u, nil
	}
	c, err := NewCluster()
	if err != nil {
		return "", err
	}
	started = c
	return c.URL(), os.Setenv(URLVariable, c.URL())
}

// URL is that of the shared server. Where there is none the test is skipped, or
// fails if TOOLRUNTIME_REQUIRE_POSTGRES is 1.
func URL(t testing.TB) string {
	t.Helper()
	u, err := shared()
	if err != nil {
		Missing(t, err)
	}
	return u
}

// Missing skips a test for want of a server, or fails it where one is required.
func Missing(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoBinaries) && os.Getenv("TOOLRUNTIME_REQUIRE_POSTGRES") != "1" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// Schema makes an empty schema on the shared server and returns the URL under
// which it is the search_path.
func Schema(t testing.TB) string {
	t.Helper()
	server := URL(t)
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))
	db := Open(t, server)
	defer db.Close()
	if _, err := db.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	if started == nil {
		t.Cleanup(func() {
			db := Open(t, server)
			defer db.Close()
			if _, err := db.Exec("DROP SCHEMA " + name + " CASCADE"); err != nil {
				t.Error(err)
			}
		})
	}
	return With(server, "search_path", name)
}

// SkipExamples skips the examples of a test binary where there is no server and none is
// required: an example cannot skip itself. It is for TestMain, before [Main].
func SkipExamples() {
	flag.Parse()
	if os.Getenv(URLVariable) != "" || os.Getenv("TOOLRUNTIME_REQUIRE_POSTGRES") == "1" || binaries() != "" {
		return
	}
	skip := flag.Lookup("test.skip").Value
	if err := skip.Set(strings.TrimPrefix(skip.String()+"|^Example", "|")); err != nil {
		panic(err)
	}
}

// Example makes empty schemas on the shared server for an example, and returns the URLs
// under which each is the search_path.
func Example(names ...string) (urls []string, drop func()) {
	server, err := shared()
	if err != nil {
		panic(err)
	}
	db, err := sql.Open("pgx", server)
	if err != nil {
		panic(err)
	}
	do := func(statement string) {
		if _, err := db.Exec(statement); err != nil {
			panic(err)
		}
	}
	for _, name := range names {
		do("DROP SCHEMA IF EXISTS " + name + " CASCADE")
		do("CREATE SCHEMA " + name)
		urls = append(urls, With(server, "search_path", name))
	}
	return urls, func() {
		defer db.Close()
		for _, name := range names {
			do("DROP SCHEMA " + name + " CASCADE")
		}
	}
}

// With adds a parameter to a URL.
func With(server, name, value string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq knows no other space
	return u.String()
}

// Open is a connection past the runtime.
func Open(t testing.TB, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A Cluster is a private server. It listens on a socket in its folder alone.
type Cluster struct {
	folder, binaries string
	owner            *syscall.Credential // nil: whoever runs the tests
	server           *exec.Cmd
	ended            chan struct{}
}

// NewCluster makes a cluster and starts it.
func NewCluster(settings ...string) (*Cluster, error) {
	c, err := prepare()
	if err != nil {
		return nil, err
	}
	err = c.run("initdb", "-D", c.data(), "-U", "toolruntime", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if err == nil {
		err = c.Start(settings...)
	}
	if err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// prepare finds the binaries and makes the folder. PostgreSQL refuses to run as
// root, so root's tests run it as somebody else.
func prepare() (*Cluster, error) {
	c := &Cluster{binaries: binaries()}
	if c.binaries == "" {
		return nil, errNoBinaries
	}
	// A socket's path holds 107 bytes at most.
	folder, err := os.MkdirTemp("/tmp", "trpg")
	if err != nil {
		return nil, err
	}
	c.folder = folder
	if os.Getuid() != 0 {
		return c, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return c, os.Chown(folder, uid, gid)
	}
	return c, errors.New("pgtest: no unprivileged user to run PostgreSQL")
}

// binaries is the folder of PostgreSQL's, or "".
func binaries() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.Sort(found)
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// CloneOf makes a standby of a running cluster, by name, and starts it.
func CloneOf(primary *Cluster, name string) (*Cluster, error) {
	c, err := prepare()
	if err != nil {
		return nil, err
	}
	err = c.run("pg_basebackup", "-D", c.data(), "-R", "-X", "stream", "-c", "fast",
		"-d", primary.dsn()+" application_name="+name)
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }
func (c *Cluster) dsn() string  { return "host=" + c.folder + " user=toolruntime dbname=postgres" }

// URL is how clients reach the cluster.
func (c *Cluster) URL() string {
	return "postgres://toolruntime@/postgres?sslmode=disable&host=" + url.QueryEscape(c.folder)
}

// Folder is that of the socket.
func (c *Cluster) Folder() string { return c.folder }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.binaries, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	// The server must not outlive a test binary that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (c *Cluster) run(name string, args ...string) error {
	out, err := c.command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgtest: %s: %w\n%s", name, err, out)
	}
	return nil
}

// Start starts the server and waits until it answers. Settings are of the form
// name=value.
func (c *Cluster) Start(settings ...string) error {
	args := []string{"-D", c.data(), "-k", c.folder, "-c", "listen_addresses=", "-c", "max_connections=200",
		"-c", "fsync=on", "-c", "shared_buffers=64MB", "-c", "logging_collector=off"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	log, err := os.OpenFile(filepath.Join(c.folder, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.server = c.command("postgres", args...)
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	go func() {
		_ = c.server.Wait()
		close(c.ended)
	}()
	for limit := time.After(60 * time.Second); ; {
		if c.run("pg_isready", "-q", "-h", c.folder) == nil {
			return nil
		}
		select {
		case <-c.ended:
			text, _ := os.ReadFile(filepath.Join(c.folder, "log"))
			return fmt.Errorf("pgtest: the server has ended:\n%s", text)
		case <-limit:
			return errors.New("pgtest: the server does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, as `pg_ctl stop -m immediate` does: without a
// checkpoint, and with every connection cut.
func (c *Cluster) Kill() {
	if c.server == nil || c.server.Process == nil {
		return
	}
	_ = c.server.Process.Signal(syscall.SIGQUIT)
	<-c.ended
}

// Promote makes a standby the primary.
func (c *Cluster) Promote() error { return c.run("pg_ctl", "promote", "-w", "-D", c.data()) }

// Remove ends the server and deletes the folder.
func (c *Cluster) Remove() {
	c.Kill()
	_ = os.RemoveAll(c.folder)
}
