package ledger

import "github.com/toolruntime/toolruntime-go/internal/contract"

// A Term is a time from now on: of a lease, or of a wait.
type Term struct {
	Now, Until int64
	// Own says that now is by the ledger's own clock. A transaction that decides by
	// it reads it again when its turn has come: the caller may have waited for that,
	// or slept. A clock that the host gave is a callback, and is not read there.
	Own bool
}

// anew is t from the present moment on.
func (s *Ledger) anew(t Term) Term {
	if t.Own {
		now := s.engine.Now().Unix()
		t.Now, t.Until = now, min(t.Until+now-t.Now, contract.MaxTime)
	}
	return t
}
