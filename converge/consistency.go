// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/guard"
)

type journalKey struct{}

func journalIn(ctx context.Context) *guard.Journal {
	journal, _ := ctx.Value(journalKey{}).(*guard.Journal)
	return journal
}

// guarded returns a client that records what is written, for a gate to wait for.
func (p *process) guarded(cached client.Client, live client.Reader, cache *processCache) client.Client {
	p.guard = guard.NewCluster(cached, live, cache, journalIn)
	plan := p.run.plan
	p.guard.Watch(plan.For)
	for _, obj := range plan.Owns {
		p.guard.Watch(obj)
	}
	for _, watch := range plan.Watches {
		p.guard.Watch(watch.Object)
	}
	return p.guard.Client()
}

// consistent returns a reconciler whose requests wait until the caches have their earlier writes, with [Gate].
func (r *run) consistent(p *process, inner reconcile.Reconciler) reconcile.Reconciler {
	if p.guard == nil || inner == nil {
		return inner
	}
	gate := &guard.Gate{}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		journal := &guard.Journal{}
		ctx = context.WithValue(ctx, journalKey{}, journal)
		if wait := gate.Enter(ctx, req, journal, guard.DefaultTimeout); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		defer gate.Leave(req, journal)
		return inner.Reconcile(ctx, req)
	})
}
