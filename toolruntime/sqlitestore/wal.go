package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
)

// logLimit is how large the write-ahead log grows before the writer sees to it:
// twice what SQLite's own checkpoints let it become.
const logLimit = 64 << 20

// A logGuard keeps the write-ahead log bounded. SQLite's own checkpoints begin
// the log anew only when they find nobody reading: under readers that always
// overlap, each of them short, it grows without end (measured: 290 MB in 15 s).
// The guard's checkpoint keeps writers out until the readers of that moment have
// left, while new ones read the database itself.
//
// It waits for them as briefly as a writer does, and at half as much again as the
// limit for half of what another process waits for this one. So the log stays below
// that while every reader takes less. A reader who stays longer, an audit or a
// backup, lets it grow: that is logged, and tried again at length whenever the log
// has doubled.
type logGuard struct {
	path     string // of the log
	limit    int64
	brief    time.Duration
	patience time.Duration
	logger   *slog.Logger

	next    int64 // the size at which it acts
	patient int64 // and at which it is patient
	told    bool  // that the log grows
	full    bool  // the log could not grow
	turns   int   // commits since it has last looked at the size
	size    atomic.Int64
}

// guardTurns is after how many commits the guard looks: a few of them make the log
// little larger.
const guardTurns = 16

func newLogGuard(database string, limit int64, wait time.Duration, logger *slog.Logger) *logGuard {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &logGuard{path: database + "-wal", limit: limit, next: limit, patient: limit + limit/2,
		brief: min(wait, writerPoll), patience: max(wait/2, min(wait, writerPoll)), logger: logger}
}

// note keeps in mind that there was no room. The log is what grows with a commit,
// and what is in it may have room in the database.
func (g *logGuard) note(err error) {
	if errors.Is(err, engine.ErrFull) {
		g.full = true
	}
}

// bound begins the log anew when it is too large, or could not grow.
func (c *committer) bound() {
	g := c.log
	if g.turns++; g.turns < guardTurns && !g.full || !c.watch.inPlace() {
		return
	}
	g.turns = 0
	info, err := os.Stat(g.path)
	if err != nil {
		return
	}
	size := info.Size()
	g.size.Store(size)
	if size < g.next && !g.full {
		return
	}
	g.full = false
	wait := g.brief
	if size >= g.patient {
		wait = g.patience
	}
	done, err := c.checkpoint(wait)
	if done {
		g.size.Store(0)
		g.next, g.patient = g.limit, g.limit+g.limit/2
		if g.told {
			g.told = false
			g.logger.Info("sqlitestore: the write-ahead log was begun anew", "bytes", size)
		}
		return
	}
	g.next = size + max(g.limit/2, size/4)
	if size >= g.patient {
		g.patient, g.told = 2*size, true
		g.logger.Warn("sqlitestore: the write-ahead log grows: a reader keeps it from being begun anew, or the database has no room",
			"bytes", size, "limit", g.limit, "error", err)
	}
}

// checkpoint brings the log into the database and makes it empty, unless a reader
// stays longer than wait.
func (c *committer) checkpoint(wait time.Duration) (done bool, err error) {
	if wait != c.log.brief {
		if err := c.busyTimeout(wait); err != nil {
			return false, err
		}
		defer func() { _ = c.busyTimeout(c.log.brief) }()
	}
	var busy, frames, copied int64
	err = classify(c.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied))
	if err != nil || busy != 0 {
		return false, err
	}
	if seen, err := c.watch.look(); err == nil {
		_ = c.hold(seen) // the next write hears of it
	}
	return true, nil
}

func (c *committer) busyTimeout(wait time.Duration) error {
	return c.exec(fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()))
}
