package sqlitestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolruntime/toolruntime-go/internal/engine"
	"github.com/toolruntime/toolruntime-go/toolresult"
)

// Nothing in this package opens the file of a ledger, or one beside it, but SQLite
// does: POSIX takes a process's locks on a file away when the process closes any
// descriptor of it. Without them another program that closes the ledger believes
// to be the last, and deletes the write-ahead log that is in use. What there is to
// know about the file is asked by its name.

// beside are the suffixes of the names that SQLite gives to what belongs to a
// database.
var beside = []string{"-wal", "-shm", "-journal"}

// A location is where a ledger lies.
type location struct {
	name string // as the caller calls it, made absolute
	real string // what that leads to, without a link: SQLite puts the log beside it
}

// locate finds the file that a path means to the operating system, whether or not
// it is there yet.
func locate(path string) (location, error) {
	switch {
	case path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:"):
		return location{}, &toolresult.InputError{Field: "database", Rule: "must be the path of a file, not a database in memory or a URI"}
	case strings.ContainsRune(path, 0):
		return location{}, &toolresult.InputError{Field: "database", Rule: "must not contain a zero byte"}
	}
	if !filepath.IsAbs(path) {
		folder, err := os.Getwd()
		if err != nil {
			return location{}, fileError(err)
		}
		// Not filepath.Join, which takes link/.. for nothing.
		path = folder + string(filepath.Separator) + path
	}
	real, err := follow(path)
	if err != nil {
		return location{}, err
	}
	for _, suffix := range beside {
		if strings.HasSuffix(real, suffix) {
			return location{}, &toolresult.InputError{Field: "database", Rule: "must not end in -wal, -shm or -journal: SQLite has such names for its own files"}
		}
	}
	if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && names(info) > 1 {
		return location{}, &toolresult.InputError{Field: "database", Rule: "must have one name, and the file has others (hard links): " +
			"under each of them it would have a write-ahead log of its own; remove the others, or copy the ledger with `toolruntime backup`"}
	}
	return location{name: path, real: real}, nil
}

// maxLinks bounds how many links to files that are not there are followed.
const maxLinks = 40

// follow resolves every link of an absolute path. The file itself need not be there,
// nor what a link in its place leads to.
func follow(path string) (string, error) {
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fileError(err)
		}
		folder, file := filepath.Split(path)
		if folder, err = filepath.EvalSymlinks(folder); errors.Is(err, fs.ErrNotExist) || file == "" {
			return "", &toolresult.InputError{Field: "database", Rule: "must be in a folder that exists"}
		} else if err != nil {
			return "", fileError(err)
		}
		path = filepath.Join(folder, file)
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // nothing there yet
		}
		if !filepath.IsAbs(target) {
			target = folder + string(filepath.Separator) + target
		}
		path = target
	}
	return "", &toolresult.InputError{Field: "database", Rule: "must be a file: its links lead nowhere"}
}

// glance is how long the files are believed to be in their places without a look,
// where nothing is acknowledged: a replay costs little more than a look.
const glance = 10 * time.Millisecond

// A watch holds the files that SQLite has open against those that bear their names
// now. When somebody has removed, moved or replaced one, the store would go on in
// files without a name, and everybody else in others.
type watch struct {
	files    []watched
	begun    time.Time
	looked   atomic.Int64 // when, since begun
	detached atomic.Bool  // for good
	away     atomic.Pointer[absence]
}

// An absence begins when the database is found gone, and nothing in its place. It ends
// when it is there again, a volume remounted or a file moved back, with the log as it
// was: nobody has gone on with that elsewhere. While it lasts nothing is acknowledged.
type absence struct {
	log fs.FileInfo // nil if it has gone, too
}

// over reports whether the store may go on.
func (a *absence) over(log fs.FileInfo) bool {
	return a.log == nil || a.log.Size() == log.Size() && a.log.ModTime().Equal(log.ModTime())
}

type watched struct {
	name          string
	info          fs.FileInfo
	database, log bool
}

// newWatch takes the files that have the names now for those that are open, where
// the database still is the one that it was before. A reader alone may do without a
// log.
func newWatch(at location, before fs.FileInfo, readOnly bool) (*watch, error) {
	w := &watch{begun: time.Now()}
	all := []string{at.real, at.real + "-wal", at.real + "-shm"}
	if at.name != at.real {
		all = append(all, at.name)
	}
	for _, name := range all {
		info, err := os.Stat(name)
		database := name == at.real || name == at.name
		switch {
		case errors.Is(err, fs.ErrNotExist) && readOnly && !database:
			continue
		case errors.Is(err, fs.ErrNotExist), err == nil && database && !os.SameFile(info, before):
			return nil, errDetached()
		case err != nil:
			return nil, fileError(err)
		}
		w.files = append(w.files, watched{name, info, database, name == at.real+"-wal"})
	}
	return w, nil
}

// A sight is how the files were at a look.
type sight struct {
	database fs.FileInfo
	log      int64 // bytes
}

// look fails when a file is not in its place.
func (w *watch) look() (s sight, err error) {
	if w.detached.Load() {
		return s, errDetached()
	}
	var log fs.FileInfo
	for i, f := range w.files {
		info, err := os.Stat(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.database:
			log, _ := os.Stat(w.files[0].name + "-wal")
			w.away.CompareAndSwap(nil, &absence{log})
			return s, errAway()
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(info, f.info):
			w.detached.Store(true)
			return s, errDetached()
		case err != nil: // nobody knows; nothing is acknowledged meanwhile
			return s, fileError(err)
		case i == 0:
			s.database = info
		case f.log:
			log, s.log = info, info.Size()
		}
	}
	if gone := w.away.Load(); gone != nil {
		if log != nil && !gone.over(log) {
			w.detached.Store(true)
			return s, errDetached()
		}
		w.away.CompareAndSwap(gone, nil)
	}
	w.looked.Store(int64(time.Since(w.begun)))
	return s, nil
}

// glance is look, if the last one is some time ago.
func (w *watch) glance() error {
	if w.inPlace() && time.Since(w.begun)-time.Duration(w.looked.Load()) < glance {
		return nil
	}
	_, err := w.look()
	return err
}

// inPlace is what the last look has shown.
func (w *watch) inPlace() bool { return !w.detached.Load() && w.away.Load() == nil }

// end makes what the last look has shown final.
func (w *watch) end() {
	if _, err := w.look(); err != nil {
		w.detached.Store(true)
	}
}

// onlyLogGone reports whether the log is what has gone, and the database is in its
// place as it was: then nobody has put anything there since that the log does not
// know.
func (w *watch) onlyLogGone(was fs.FileInfo) bool {
	database, err := os.Stat(w.files[0].name)
	if err != nil || !os.SameFile(database, was) || database.Size() != was.Size() || !database.ModTime().Equal(was.ModTime()) {
		return false
	}
	_, err = os.Lstat(w.files[0].name + "-wal")
	return errors.Is(err, fs.ErrNotExist)
}

func errDetached() error { return &engine.Error{Kind: engine.ErrDetached} }

// errAway says that the database may come back.
func errAway() error {
	return &engine.Error{Kind: engine.ErrDetached, Cause: &engine.Error{Kind: engine.ErrUnavailable}}
}
