// Package failpoint carries the point at which a call stops as if its process had
// died. Package drill puts it in a context, and the runtime takes it out.
package failpoint

import "context"

// The points.
const (
	AfterIntentCommit     = "after_intent_commit"
	AfterClaim            = "after_claim"
	AfterDownstreamCommit = "after_downstream_commit"
)

type key struct{}

// carried tells a context without a point from one whose point is empty.
type carried struct {
	point string
	set   bool
}

// With returns a context that carries a point, whatever it is called.
func With(ctx context.Context, point string) context.Context {
	return context.WithValue(ctx, key{}, carried{point, true})
}

// Take returns the point of a context, whether there is one, and a context without
// it: what a call calls in its turn does not stop.
func Take(ctx context.Context) (point string, set bool, free context.Context) {
	c, _ := ctx.Value(key{}).(carried)
	if !c.set {
		return "", false, ctx
	}
	return c.point, true, context.WithValue(ctx, key{}, carried{})
}
