package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolruntime/toolruntime-go/internal/pgtest"
)

// A bed is where one measurement happens: fresh files, fresh databases, and what
// has to be undone.
type bed struct {
	folder string
	server *server
	undo   []func() error
	// watch sums up what a batch costs, if its scenario starts it: a batch does more
	// than what is measured.
	watch watch
	// found is asked, when all has been measured, what a scenario knows beside its
	// rate.
	found func(context.Context) (map[string]float64, error)
}

func newBed(under string, s *server) (*bed, error) {
	folder, err := os.MkdirTemp(under, "bed")
	b := &bed{folder: folder, server: s}
	if s != nil {
		b.watch.server = s.postmaster
	}
	b.later(func() error { return os.RemoveAll(folder) })
	return b, err
}

// later adds what is to be undone; the last first.
func (b *bed) later(f func() error) { b.undo = append(b.undo, f) }

func (b *bed) close() error {
	var errs []error
	for _, f := range slices.Backward(b.undo) {
		errs = append(errs, f())
	}
	b.undo = nil
	return errors.Join(errs...)
}

// file is the path of a file that is not there yet.
func (b *bed) file(name string) string { return filepath.Join(b.folder, name) }

// database makes a database on the server and returns its URL.
func (b *bed) database(ctx context.Context) (string, error) {
	s := b.server
	s.made++
	name := fmt.Sprintf("bench_%d", s.made)
	if _, err := s.admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	b.later(func() error {
		_, err := s.admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		return err
	})
	u, err := url.Parse(s.cluster.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// A server is a private PostgreSQL with the settings of a fresh installation
// where durability is concerned.
type server struct {
	cluster    *pgtest.Cluster
	admin      *sql.DB
	postmaster *process // nil where /proc does not show it
	made       int
}

// startServer gives the server with its version. What it believes of a commit is
// read back: nothing that is measured here may be faster than the disk.
func startServer(ctx context.Context) (_ *server, version string, err error) {
	s := &server{}
	if s.cluster, err = pgtest.NewCluster("synchronous_commit=on", "full_page_writes=on", "max_connections=400"); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.admin, err = sql.Open("pgx", s.cluster.URL()); err != nil {
		return nil, "", err
	}
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var is string
		if err := s.admin.QueryRowContext(ctx, "SHOW "+setting).Scan(&is); err != nil {
			return nil, "", err
		}
		if is != "on" {
			return nil, "", fmt.Errorf("the server has %s=%s", setting, is)
		}
	}
	var data string
	if err := s.admin.QueryRowContext(ctx, "SELECT current_setting('data_directory'), current_setting('server_version')").Scan(&data, &version); err != nil {
		return nil, "", err
	}
	if s.postmaster, err = findPostmaster(data); err != nil {
		fmt.Fprintln(os.Stderr, "without what PostgreSQL costs:", err)
	}
	return s, version, nil
}

func (s *server) stop() {
	if s.admin != nil {
		s.admin.Close()
	}
	s.cluster.Remove()
}
