// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/sim"
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

// newProgram returns the program of New or Setup, without what a check fills in.
func newProgram(s Scenario) *sim.Program {
	var build func(*sim.Process) reconcile.Reconciler
	if s.New != nil {
		build = func(p *sim.Process) reconcile.Reconciler { return s.New(newEnv(p)) }
	}
	return &sim.Program{
		Client: phrase.Manager, Build: build, Setup: s.Setup, Indexes: s.Indexes,
		Uncached: map[schema.GroupVersionKind]bool{},
		Recorder: s.Permissions,
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
		c.program = &sim.Program{
			Index: i + 1, Name: p.Name, Client: p.Name, Setup: p.Setup, Uncached: map[schema.GroupVersionKind]bool{},
			Recorder: p.Permissions,
		}
		c.uncached(field+".", p.Uncached)
		c.admission(field+".", p.Webhooks)
		c.roles(field+".", p.Roles)
		c.programs = append(c.programs, c.program)
	}
}
