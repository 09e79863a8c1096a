// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// program is what a process runs: the parts of a valid scenario that the authors of controllers write.
type program struct {
	// client is the name of the client of its processes. Events have it.
	client string

	// build is set for scenarios with New, and setup for those with Setup.
	build   func(Env) reconcile.Reconciler
	setup   func(manager.Manager) error
	indexes func(client.FieldIndexer) error

	owns     []schema.GroupVersionKind
	watches  []watchOf
	filters  []filterOf
	uncached map[schema.GroupVersionKind]bool
	// webhooks are those that configurations name.
	webhooks []webhook
	// read are the kinds that are read from caches. The caches exist from the start: other controllers of the same process
	// may use them.
	read []schema.GroupVersionKind
}

type watchOf struct {
	Watch

	kind schema.GroupVersionKind
}

// newProgram returns the program of a scenario, without what a check fills in.
func newProgram(s *Scenario, client string) *program {
	return &program{
		client: client, build: s.New, setup: s.Setup, indexes: s.Indexes, uncached: map[schema.GroupVersionKind]bool{},
	}
}
