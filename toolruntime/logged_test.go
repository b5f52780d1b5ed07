package toolruntime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
	"github.com/toolruntime/toolruntime-go/toolruntime/sqlitestore"
)

type memo struct {
	Text string `json:"text" schema:"maxLength=40"`
}

// TestLogsKeepSecrets: whatever a call comes to, the log has its status_ref, its tool and
// its outcome, and nothing of who has made it, under which key, with which arguments and
// with which result. A handler's own error is logged as it is.
func TestLogsKeepSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.sqlite3"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		answers := map[string]error{"done": nil, "lost": errors.New("the handler's own words"), "not done": toolruntime.GiveUp(errors.New("no")), "bad": nil, "panic": nil}
		tool := toolruntime.Tool[memo, memo]{
			Name: "memo", Resource: func(memo) string { return "secret resource" }, MaxOutputBytes: 30,
			Run: func(_ context.Context, e toolruntime.Effect, a memo) (r toolruntime.Receipt[memo], err error) {
				how := strings.TrimPrefix(e.IdempotencyKey, "secret ")
				switch how {
				case "panic":
					panic(a)
				case "bad":
					a.Text += strings.Repeat("!", 30)
				}
				return toolruntime.Receipt[memo]{ID: "secret receipt " + how, RequestID: "secret request", Data: a}, answers[how]
			},
		}
		rt, err := toolruntime.New(store, &toolruntime.Options{
			Authorizer: func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
			Approvers:  func(context.Context, toolresult.Principal, string, string) (bool, error) { return true, nil },
			Logger:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}, tool)
		if err != nil {
			t.Fatal(err)
		}
		who := toolresult.Principal{TenantID: "secret tenant", SubjectID: "secret subject"}
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- rt.Work(ctx, nil) }()
		var refs []string
		for how := range answers {
			at := toolresult.OpenAIResponses.Context("secret response", "secret call "+how)
			at.OperationID, at.IdempotencyKey = "secret operation", "secret "+how
			c := toolresult.NewCall(toolresult.Proposal{Name: "memo", Arguments: []byte(`{"text":"secret text"}`)}, at)
			b, err := rt.Bind(who, c)
			if err != nil {
				t.Fatal(err)
			}
			approval := toolresult.NewApproval(b, "secret approval", "secret approver", time.Now().Add(time.Hour))
			if _, err := rt.Submit(ctx, who, c, approval); err != nil {
				t.Fatal(err)
			}
			pkg, err := rt.Await(ctx, who, c)
			if err != nil || (pkg.Code() == toolresult.OK) != (how == "done") {
				t.Errorf("%s: %v, %v", how, pkg, err)
			}
			refs = append(refs, b.StatusRef())
		}
		stop()
		if err := <-worked; err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			if want := fmt.Sprintf("status_ref=%s tool=memo attempt=1 outcome=", ref); !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %s", want)
			}
		}
		if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "the handler's own words") {
			t.Errorf("the log:\n%s", text)
		}
	})
}
