// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/graph/rbac"
)

// Program is a further program of a scenario, with a manager of its own.
type Program struct {
	// Name is the name of its client, which is also the default of its field managers, and its name in messages. Required.
	Name string
	// Setup registers controllers with its manager, at the start and after each crash. Required.
	Setup func(manager.Manager) error
	// Webhooks are configurations of the webhooks that Setup registers, as [Scenario.Webhooks] are.
	Webhooks []client.Object
	// Uncached are kinds that its client reads from the API server, as [Scenario.Uncached] are.
	Uncached []client.Object
	// Roles are what it may do, as [Scenario.Roles] are.
	Roles []client.Object
	// Permissions records what its requests need, as [Scenario.Permissions] does.
	Permissions *rbac.Recorder
}

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
	// roles are what its processes may do. Nil allows everything.
	roles []access.Role
	// recorder records what its processes need. Optional.
	recorder *rbac.Recorder
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

// newProgram returns the program of New or Setup, without what a check fills in.
func newProgram(s *Scenario) *program {
	return &program{
		client: phrase.Manager, build: s.New, setup: s.Setup, indexes: s.Indexes,
		uncached: map[schema.GroupVersionKind]bool{},
		recorder: s.Permissions,
	}
}

// furtherPrograms checks the further programs.
func (c *scenarioCheck) furtherPrograms() {
	names := []string{"", phrase.Manager, phrase.User, phrase.AnotherClient, phrase.GarbageCollector}
	for _, actor := range c.World {
		names = append(names, actor.Name)
	}
	for i, p := range c.Programs {
		field := fmt.Sprintf("Programs[%d]", i)
		switch {
		case p.Name == "":
			c.problem("%s.Name is required", field)
		case slices.Contains(names, p.Name):
			c.problem("%s.Name must not be %q, which is the name of another client", field, p.Name)
		}
		if p.Setup == nil {
			c.problem("%s.Setup is required", field)
		}
		names = append(names, p.Name)
		c.program = &program{
			index: i + 1, name: p.Name, client: p.Name, setup: p.Setup, uncached: map[schema.GroupVersionKind]bool{},
			recorder: p.Permissions,
		}
		c.uncached(field+".", p.Uncached)
		c.admission(field+".", p.Webhooks)
		c.roles(field+".", p.Roles)
		c.programs = append(c.programs, c.program)
	}
}
