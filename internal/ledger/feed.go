package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

// A Feed is where a listener is among the ends. There are two tracks of them: the keys of
// receipts, for what has succeeded by a receipt that came with it, and those of endings,
// for all else. A transaction takes its key before it commits, so that on PostgreSQL a
// larger key may be there first: what is missing between two is a gap, which stays open
// until it is certain that nobody can fill it any more.
type Feed struct{ receipts, endings track }

// A track is a listener's place on a track.
type track struct {
	head int64 // the largest key that was seen
	gaps []gap // below it, in order
	// told is the largest key up to which all is told, or will never be there: what a
	// cursor says. check is one of them, by which a cursor is known again.
	told, check int64
	name        int64 // of the operation at check
}

// A gap are keys, both ends included, that nobody was seen with.
type gap struct {
	from, to int64
	known    bool // writers are known
	// writers are the transactions that may have taken one of them: those that were
	// writing some time after it was seen to be missing, and ever since.
	writers []string
}

// An End is what was read of an operation under a key of a track.
type End struct {
	on        *track
	key       int64
	StatusRef string
	Tool      string
	State     State
	Reason    toolresult.Code
	At        int64
	receipt   bool // the key is a receipt's
}

// Told reports whether a listener hears of it. What is open again is told when it has
// ended, and what failed in spite of a receipt by its ending.
func (e *End) Told() bool {
	switch e.State {
	case Succeeded:
		return true
	case Failed, InReview:
		return !e.receipt
	}
	return false
}

// nameOf makes a number of a status_ref.
func nameOf(statusRef string) int64 {
	sum := sha256.Sum256([]byte(statusRef))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// settled is the largest key up to which nothing can come any more.
func (t *track) settled() int64 {
	if len(t.gaps) > 0 {
		return t.gaps[0].from - 1
	}
	return t.head
}

// Tell says that an end is told now, and all with smaller keys of its track were.
func (f *Feed) Tell(e End) {
	if t := e.on; e.key <= t.settled() {
		t.told, t.check, t.name = e.key, e.key, nameOf(e.StatusRef)
	} else {
		t.told = max(t.told, t.settled())
	}
}

const completionsKind byte = 'C'

func (f *Feed) Cursor() Cursor {
	r, e := &f.receipts, &f.endings
	return cursorOf(completionsKind, r.told, r.check, r.name, e.told, e.check, e.name)
}

// feedAt is the place that a cursor says.
func feedAt(c Cursor) (*Feed, error) {
	f := &Feed{}
	if c == "" {
		return f, nil
	}
	n, err := c.numbers(completionsKind, "completions", 6)
	if err != nil {
		return nil, err
	}
	f.receipts = track{head: n[0], told: n[0], check: n[1], name: n[2]}
	f.endings = track{head: n[3], told: n[3], check: n[4], name: n[5]}
	return f, nil
}

// read takes in what a snapshot has, in the order of the keys, behind the head and in the
// gaps, and returns what is new. writers are the transactions that were writing before
// the snapshot was taken.
func (t *track) read(rows []End, writers []string) (fresh []End) {
	var open []gap
	rest := rows
	for _, g := range t.gaps {
		i, _ := slices.BinarySearchFunc(rest, g.from, func(e End, key int64) int { return cmp.Compare(e.key, key) })
		rest = rest[i:]
		// Whoever has taken one of these keys was writing when it was seen to be missing:
		// he is among the writers that were asked for then, or has committed before, and
		// is in this snapshot.
		if g.known {
			g.writers = slices.DeleteFunc(slices.Clone(g.writers), func(w string) bool { return !slices.Contains(writers, w) })
		} else {
			g.known, g.writers = true, writers
		}
		keep := func(from, to int64) {
			if from <= to && len(g.writers) > 0 {
				open = append(open, gap{from, to, true, g.writers})
			}
		}
		from := g.from
		for len(rest) > 0 && rest[0].key <= g.to {
			fresh = append(fresh, rest[0])
			keep(from, rest[0].key-1)
			from, rest = rest[0].key+1, rest[1:]
		}
		keep(from, g.to)
	}
	for _, e := range rest {
		if e.key <= t.head {
			continue
		}
		if e.key > t.head+1 {
			open = append(open, gap{from: t.head + 1, to: e.key - 1})
		}
		t.head = e.key
		fresh = append(fresh, e)
	}
	t.gaps = open
	return fresh
}

// near is how far gaps may be from each other to be read together.
const near = 500

// ranges are what has to be read to fill the gaps.
func (t *track) ranges() (all []gap) {
	for _, g := range t.gaps {
		if n := len(all) - 1; n >= 0 && g.from-all[n].to <= near {
			all[n].to = g.to
		} else {
			all = append(all, gap{from: g.from, to: g.to})
		}
	}
	return all
}

// unasked reports whether it is not known yet who could fill some gap.
func (t *track) unasked() bool {
	return slices.ContainsFunc(t.gaps, func(g gap) bool { return !g.known })
}
