package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/toolruntime/toolruntime-go/examples/payments"
	"github.com/toolruntime/toolruntime-go/toolresult"
	"github.com/toolruntime/toolruntime-go/toolruntime"
)

// A payment is a tool of the crashes.
type payment = toolruntime.Tool[payments.PayArgs, payments.Paid]

// payKinds are the payments tools by name, one of each effect kind.
var payKinds = map[string]toolruntime.EffectKind{
	"pay_idempotent": toolruntime.Idempotent,
	"pay_queryable":  toolruntime.Queryable,
	"pay_once":       toolruntime.Once,
}

var payNames = []string{"pay_idempotent", "pay_queryable", "pay_once"}

// payTool pays at the bank; one of the kind once does so at the careless one, which
// does not look at keys and so counts how often it was run.
func payTool(name, bank, careless string) payment {
	if payKinds[name] == toolruntime.Once {
		bank = careless
	}
	tool := payments.Tool(bank, nil, payKinds[name])
	tool.Name = name
	return tool
}

func payTools(bank, careless string) (tools []toolruntime.Registration) {
	for _, name := range payNames {
		tools = append(tools, payTool(name, bank, careless))
	}
	return tools
}

// bookName is the transactional tool of the crashes.
const bookName = "pay_transactional"

var crashNames = append(slices.Clone(payNames), bookName)

// What submitters know of the two versions of every tool, and what workers do. A
// call may come again at any submitter, so each answers for both.
var (
	submitterVersions = []string{"v1+v2", "v2+v1"}
	workerVersions    = []string{"v1", "v2", "v1+v2", "v2+v1"}
)

// crashTools are those of payTools, and one that books the payment into a table
// beside the ledger, after which trouble happens as the test says; each in the
// versions that are named, the current one first.
func crashTools(e engine, versions, bank, careless string, trouble func() error) (tools []toolruntime.Registration) {
	all := []payment{bookTool(e, bookName, trouble)}
	for _, name := range payNames {
		all = append(all, payTool(name, bank, careless))
	}
	for _, tool := range all {
		names := strings.Split(versions, "+")
		current := handled(tool, names[0])
		for _, other := range names[1:] {
			current.Versions = append(current.Versions, handled(tool, other))
		}
		tools = append(tools, current)
	}
	return tools
}

// handled is a version of a tool, by the revision of its handler.
func handled(tool payment, version string) payment {
	tool.Revisions.Handler = version
	return tool
}

func (p *part) tools() []toolruntime.Registration {
	return crashTools(p.engine(), p.Versions, p.Bank, p.Careless, func() error {
		// The time in which the transaction may be cut short.
		timer := time.NewTimer(time.Duration(rand.Int64N(int64(4 * time.Millisecond))))
		<-timer.C
		switch rand.IntN(20) {
		case 0:
			return toolruntime.RetryLater(0, errLost)
		case 1:
			return errLost
		case 2:
			panic("it has booked, and panics")
		case 3:
			if rand.IntN(4) == 0 {
				return toolruntime.GiveUp(errLost)
			}
		}
		return nil
	})
}

// payCall is a payment that follows from its key.
func payCall(tool, key string) toolresult.Call {
	return callOf(tool, key, fmt.Sprintf(`{"account":"ACC-%.40s","amount_cents":%d,"currency":"EUR"}`, key, 100+len(key)))
}
