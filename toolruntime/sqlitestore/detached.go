package sqlitestore

import (
	"context"
	"os"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// inPlace fails when the files are not in their places, or somebody has cut the log
// short: a commit would go into the hole.
func (c *committer) inPlace() error {
	err := c.watch.glance()
	if err == nil {
		if log, failed := os.Stat(c.log.path); failed != nil || log.Size() < c.last.log {
			err = c.whole()
		}
	}
	if err != nil {
		c.save()
	}
	return err
}

// whole fails when the log is shorter than what its index knows of. Another process may
// begin the log anew between the two looks, but not every time.
func (c *committer) whole() error {
	for range 3 {
		var busy, frames, copied int64
		err := classify(c.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied))
		if err != nil {
			return err
		}
		seen, err := c.watch.look()
		if err != nil {
			return err
		}
		if frames <= 0 || seen.log >= logHeader+frames*(frameHeader+pageSize) {
			return c.hold(seen)
		}
	}
	c.watch.detached.Store(true)
	return errDetached()
}

// hold takes a sight for the last one. It fails when somebody has cut the database
// short: a checkpoint makes it smaller only after a VACUUM, which changes the version of
// the schema.
func (c *committer) hold(seen sight) error {
	if seen.database.Size() < c.last.database.Size() {
		version, err := pragma(c.driver, "schema_version")
		if err != nil || version == c.version {
			c.watch.detached.Store(true)
			return errDetached()
		}
		c.version = version
	}
	c.last = seen
	return nil
}

// The sizes of a log's parts beside its pages.
const (
	logHeader   = 32
	frameHeader = 24
)

// save brings what was acknowledged into the database when somebody has removed its
// log, for whoever opens the ledger next.
func (c *committer) save() {
	if c.tried || !c.watch.detached.Load() {
		return
	}
	c.tried = true
	if c.watch.onlyLogGone(c.last.database) {
		c.saved, _ = c.checkpoint(c.wait)
	}
}

// saveIfFree is save for a reader that was the first to notice. It waits for nobody:
// who has the lead, notices as well.
func (c *committer) saveIfFree() {
	select {
	case <-c.lead:
		defer func() { c.lead <- struct{}{} }()
		if !c.ended() {
			c.save()
		}
	default:
	}
}

// noticed is err, the outcome of a look at the files; what only a removed log has is
// saved at once, before somebody opens the ledger without it.
func (e *sqliteEngine) noticed(err error) error {
	if err != nil && e.writer != nil {
		e.writer.saveIfFree()
	}
	return err
}

// abandoned are connections that are never closed.
var abandoned struct {
	sync.Mutex
	readers []reader
}

// leave ends the last connection of a store whose files are not in their places. The
// last one that closes brings its log into the database, and removes what has the
// log's name: here that would be an old log over newer pages, and somebody else's log.
// So it stays open until the process ends, unless the log is known to be empty; then
// it is enough that nothing is removed.
func (e *sqliteEngine) leave(r reader) error {
	if e.writer != nil && e.writer.saved {
		err := r.queries.driver.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1)
		if err == nil {
			return r.conn.Close()
		}
	}
	abandoned.Lock()
	defer abandoned.Unlock()
	abandoned.readers = append(abandoned.readers, r)
	return nil
}
