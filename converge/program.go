// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// program is what a process runs: the parts of a valid scenario that the authors of controllers write.
type program struct {
	// index is the index among the programs of the scenario. name is empty for the first one, that of New or Setup.
	index int
	name  string
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
	// uncalled are the paths of webhooks that no configuration names.
	uncalled []string
}

type watchOf struct {
	Watch

	kind schema.GroupVersionKind
}

// who names the processes of the program in timelines.
func (p *program) who() string {
	if p.name == "" {
		return "process"
	}
	return p.name
}

// reconcileName names the n-th reconcile of a run in timelines.
func (p *program) reconcileName(n int) string {
	if p.name == "" {
		return "reconcile " + strconv.Itoa(n)
	}
	return "reconcile " + strconv.Itoa(n) + " of " + p.name
}

// isProgram reports whether a client is that of a process.
func (p *plan) isProgram(client string) bool {
	for _, program := range p.programs {
		if program.client == client {
			return true
		}
	}
	return false
}

// newProgram returns the program of a scenario, without what a check fills in.
func newProgram(s *Scenario, client string) *program {
	return &program{
		client: client, build: s.New, setup: s.Setup, indexes: s.Indexes, uncached: map[schema.GroupVersionKind]bool{},
	}
}
