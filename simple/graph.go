// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/graph"
)

var (
	_ manager.Runnable               = (*App)(nil)
	_ manager.LeaderElectionRunnable = (*App)(nil)
)

// Graph returns what the app consists of: its controllers, webhooks and custom routes. [graph.Record] includes it, so
// that "trueup graph" and "trueup rbac" show the app:
//
//	graph.Main(scheme, func(_ context.Context, mgr ctrl.Manager) error {
//		app, err := newApp(*mgr.GetConfig())
//		if err != nil {
//			return err
//		}
//		return mgr.Add(app)
//	})
func (a *App) Graph() *graph.Graph {
	g := graph.Of(a.controllers...)
	g.Webhooks = graph.OfWebhooks(a.handlers).Webhooks
	return g
}

// Start runs the app as a part of another manager. It is [App.Run].
func (a *App) Start(ctx context.Context) error { return a.Run(ctx) }

// NeedLeaderElection reports false: the app has its own election.
func (a *App) NeedLeaderElection() bool { return false }
