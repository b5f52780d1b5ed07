package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// refundWorkflow is a workflow of one step, whose result is recorded.
func refundWorkflow(c dbos.Context, _ string) (string, error) {
	return dbos.RunAsStep(c, func(context.Context) (string, error) { return refundResult, nil }, dbos.WithStepName("effect"))
}

// newDBOS gives a function that runs a workflow, or has the result of one that
// ran.
func newDBOS(ctx context.Context, b *bed) (func(n int64) error, error) {
	address, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	b.keeps("postgres", address, "dbos.workflow_status")
	c, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{DatabaseURL: address, AppName: "bench",
		Logger: slog.New(slog.DiscardHandler), ApplicationVersion: "v1", ExecutorID: "bench"})
	if err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(c, refundWorkflow)
	if err := dbos.Launch(c); err != nil {
		return nil, err
	}
	b.later(func() error { return dbos.Shutdown(c, 5*time.Second) })
	return func(n int64) error {
		handle, err := dbos.RunWorkflow(c, refundWorkflow, refundArguments, dbos.WithWorkflowID(call(n).IdempotencyKey))
		if err != nil {
			return err
		}
		_, err = handle.GetResult()
		return err
	}, nil
}

// dbosStored is how many workflows have ended before they are asked for again.
const dbosStored = 200

func dbosScenarios() []scenario {
	var all []scenario
	for _, callers := range []int{1, 64, 256} {
		all = append(all, scenario{"dbos", "fresh", "postgres", callers, func(ctx context.Context, b *bed) (load, error) {
			run, err := newDBOS(ctx, b)
			var n atomic.Int64
			return load{do: func(context.Context, int) error { return run(n.Add(1)) }}, err
		}})
	}
	for _, callers := range []int{1, 64} {
		all = append(all, scenario{"dbos", "replay", "postgres", callers, func(ctx context.Context, b *bed) (load, error) {
			run, err := newDBOS(ctx, b)
			if err == nil {
				err = together(16, dbosStored, run)
			}
			var n atomic.Int64
			return load{do: func(context.Context, int) error { return run(n.Add(1)%dbosStored + 1) }}, err
		}})
	}
	return all
}
