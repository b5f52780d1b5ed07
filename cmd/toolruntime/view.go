package main

import (
	"time"

	"github.com/toolruntime/toolruntime-go/internal/contract"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// What the library says with times is printed with seconds: these are the JSON objects
// of the command line, in the words that programs read.

// unix is a time as the wire has it, 0 for none.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// clock is a time for people.
func clock(t time.Time) string { return contract.FormatTime(unix(t)) }

type endingView struct {
	At      int64 `json:"at"`
	Attempt int64 `json:"attempt"`
}

type historyView struct {
	StatusRef string            `json:"status_ref"`
	Tool      string            `json:"tool"`
	State     toolruntime.State `json:"state"`
	Reason    toolresult.Code   `json:"reason"`
	Moments   []momentView      `json:"moments"`
}

type momentView struct {
	At      int64                  `json:"at"`
	What    toolruntime.MomentKind `json:"what"`
	Attempt int64                  `json:"attempt,omitempty"`
	Until   int64                  `json:"until,omitempty"`
	Who     string                 `json:"who,omitempty"`
	How     string                 `json:"how,omitempty"`
	Why     string                 `json:"why,omitempty"`
}

func viewHistory(h *toolruntime.History) historyView {
	v := historyView{h.StatusRef, h.Tool, h.State, h.Reason, make([]momentView, len(h.Moments))}
	for i, m := range h.Moments {
		v.Moments[i] = momentView{unix(m.At), m.What, m.Attempt, unix(m.Until), m.Who, m.How, m.Why}
	}
	return v
}

type itemView struct {
	StatusRef string          `json:"status_ref"`
	Tool      string          `json:"tool"`
	Reason    toolresult.Code `json:"reason"`
	Attempts  int64           `json:"attempts"`
	CreatedAt int64           `json:"created_at"`
	Since     int64           `json:"since"`
}

func viewItems(items []toolruntime.Item) []itemView {
	v := make([]itemView, len(items))
	for i, m := range items {
		v[i] = itemView{m.StatusRef, m.Tool, m.Reason, m.Attempts, unix(m.CreatedAt), unix(m.Since)}
	}
	return v
}

// A toolView leaves out what the operator's program does not know: it is no worker.
type toolView struct {
	Tool           string `json:"tool"`
	Paused         bool   `json:"paused"`
	Pending        int64  `json:"pending"`
	OldestPending  int64  `json:"oldest_pending"`
	Processing     int64  `json:"processing"`
	OldestRunning  int64  `json:"oldest_processing"`
	InReview       int64  `json:"in_review"`
	OldestInReview int64  `json:"oldest_in_review"`
	Unknown        int64  `json:"in_review_unknown"`
	Attempts       int64  `json:"attempts"`
	LeasesLost     int64  `json:"leases_lost"`
}

func viewStats(st *toolruntime.Stats) []toolView {
	v := make([]toolView, len(st.Tools))
	for i, t := range st.Tools {
		v[i] = toolView{t.Tool, t.Paused, t.Pending, unix(t.OldestPending), t.Processing, unix(t.OldestRunning),
			t.InReview, unix(t.OldestInReview), t.Unknown, t.Attempts, t.LeasesLost}
	}
	return v
}
