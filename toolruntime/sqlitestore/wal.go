package sqlitestore

import (
	"context"
	"os"
)

// logLimit is how large the write-ahead log grows before the writer sees to it:
// twice what SQLite's own checkpoints let it become.
const logLimit = 64 << 20

// A logGuard keeps the write-ahead log bounded. SQLite's own checkpoints begin
// the log anew only when they find nobody reading: under readers that always
// overlap, each of them short, it grows without end (measured: 290 MB in 15 s).
// The guard's checkpoint keeps writers out until the readers of that moment have
// left, while new ones read the database itself.
type logGuard struct {
	path  string // of the log
	limit int64
	next  int64 // the size at which it acts
	turns int   // commits since it has last looked at the size
}

// guardTurns is after how many commits the guard looks: a few of them make the log
// little larger.
const guardTurns = 16

func newLogGuard(database string, limit int64) *logGuard {
	return &logGuard{path: database + "-wal", limit: limit, next: limit}
}

// bound begins the log anew when it is too large. A reader who stays longer than
// the writer waits, an audit or a backup, keeps it growing: then the next look is
// a quarter later, so that waiting for such readers costs writers little.
func (c *committer) bound() {
	g := c.log
	if g == nil {
		return
	}
	if g.turns++; g.turns < guardTurns {
		return
	}
	g.turns = 0
	info, err := os.Stat(g.path)
	if err != nil || info.Size() < g.next {
		return
	}
	var busy, frames, copied int64
	err = c.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied)
	g.next = g.limit
	if err != nil || busy != 0 {
		g.next = info.Size() + max(g.limit/2, info.Size()/4)
	}
}
