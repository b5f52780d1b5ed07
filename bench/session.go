package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A session is one run: its folder, its server and its results.
type session struct {
	config
	folder  string
	server  *server // nil where PostgreSQL is not installed
	restate string  // the server, "" where there is none or it is not asked for
	out     io.Writer
	all     []measurement
	failed  []error
}

// measure runs everything and removes what that needed. An error comes with the
// measurements that there are.
func (c config) measure(ctx context.Context) (m machine, all []measurement, err error) {
	s := &session{config: c, out: io.Discard}
	if s.folder, err = os.MkdirTemp(c.dir, "toolruntime-bench-"); err != nil {
		return m, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.folder)) }()
	version := ""
	if c.scale == nil {
		if s.server, version, err = startServer(ctx); err != nil {
			s.server = nil
			fmt.Fprintln(os.Stderr, "without PostgreSQL:", err)
		} else {
			defer s.server.stop()
		}
	}
	peer := ""
	if c.scale == nil && slices.ContainsFunc(restateScenarios(""), func(sc scenario) bool { return c.match.MatchString(sc.String()) }) {
		if s.restate, peer, err = findRestate(ctx, s.folder); err != nil {
			fmt.Fprintln(os.Stderr, "without Restate:", err)
		}
	}
	if c.out != "" {
		f, failed := os.Create(c.out)
		if failed != nil {
			return m, nil, failed
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		s.out = f
	}
	m = thisMachine(c, version)
	if s.restate != "" {
		m.Peers["Restate"] = peer
	}
	if err := writeLine(s.out, line{Machine: &m}); err != nil {
		return m, nil, err
	}
	if c.scale != nil {
		err = s.scale(ctx)
	} else {
		err = s.interleave(ctx)
	}
	return m, s.all, errors.Join(append(s.failed, err)...)
}

// interleave runs all scenarios once a round.
func (s *session) interleave(ctx context.Context) error {
	var chosen []scenario
	for _, sc := range scenarios(s.server != nil, s.restate) {
		if s.match.MatchString(sc.String()) {
			chosen = append(chosen, sc)
		}
	}
	for round := 1; round <= s.rounds; round++ {
		for i, sc := range rotated(chosen, round, s.rounds) {
			b, err := newBed(s.folder, s.server)
			if err != nil {
				return err
			}
			m, err := measure(ctx, sc, b, s.time)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.Round = round
			fmt.Fprintf(os.Stderr, "round %d/%d  %3d/%d  %-28s %12s/s\n", m.Round, s.rounds, i+1, len(chosen), sc, rate(m.PerSecond))
			if err := s.record(m, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// record keeps a measurement. One that failed does not end the run, and makes it
// fail at its end.
func (s *session) record(m measurement, failed error) error {
	if failed != nil {
		fmt.Fprintln(os.Stderr, "failed:", failed)
		s.failed = append(s.failed, failed)
		return nil
	}
	s.all = append(s.all, m)
	return writeLine(s.out, line{Measurement: &m})
}

// size is of a file, 0 if it is not there.
func size(path string) int64 {
	info, err := os.Stat(filepath.Clean(path))
	if err != nil {
		return 0
	}
	return info.Size()
}
