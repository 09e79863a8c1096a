// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

// Machine is a scenario as a run executes it. A run only reads it: what it teaches are lessons.
type Machine struct {
	Scheme *runtime.Scheme
	// Registry is the registry of the last version.
	Registry *kinds.Registry
	// Shown are the versions of kinds that events have, for kinds with several versions.
	Shown map[schema.GroupKind]string
	// ManagedFields makes the API record the managed fields of all objects.
	ManagedFields bool
	// Versions are those that the first process runs, the second one and so on. The last one is also that of all later
	// ones. Without an upgrade there is one.
	Versions []*Version
	Actors   []Actor
	// Given are the objects that exist at the start, Steps what users do, and Disturbances what they do besides.
	Given               []client.Object
	Steps, Disturbances []Step
	// Reset is called first. Optional.
	Reset func()
	// ReadOutside returns the content of external systems. Nil if it is not known.
	ReadOutside func() (state.Outside, error)
	// Faults are those that are enabled, and Allowed returns them without those that exceptions disable at a site.
	Faults  inject.Set
	Allowed func(s inject.Site, step int, faults inject.Set) inject.Set
	// CanSkip reports whether users need not wait at a Settle.
	CanSkip func(step int) bool
	// Selectors limit the caches of kinds.
	Selectors map[schema.GroupVersionKind]labels.Selector
	// OwnWrites makes reads wait for the writes of the same client, and Gate makes requests wait for the writes of earlier
	// ones to the kinds of Gated.
	OwnWrites, Gate bool
	Gated           []client.Object
	// Patience limits the virtual time of a Settle.
	Patience time.Duration
	// Random are the names that contain random letters.
	Random state.RandomNames
	// Points is about the number of injection points.
	Points int
	// Judged is what the oracles know. Its sequence has the same versions.
	Judged *judge.Case
}

// of returns the version that a process runs.
func (m *Machine) of(process int) *Version { return m.Versions[min(process, len(m.Versions))-1] }

// upgrades reports whether the version changes.
func (m *Machine) upgrades() bool { return len(m.Versions) > 1 }

// outside returns the content of external systems, or nothing if it is not known.
func (m *Machine) outside() (state.Outside, error) {
	if m.ReadOutside == nil {
		return state.Outside{}, nil
	}
	return m.ReadOutside()
}

// Version is a version of a controller, and what earlier runs have taught about it.
type Version struct {
	*judge.Version

	Registry *kinds.Registry
	Applier  *apply.Applier
	Programs []*Program
	// Read are the kinds that programs read from caches. The caches exist from the start: other controllers of the same
	// process may use them.
	Read map[*Program][]schema.GroupVersionKind
	// Converter is the conversion webhook that was registered last in earlier runs, and UsualConverter returns the webhook
	// of the scheme.
	Converter      http.Handler
	UsualConverter func() http.Handler
}

// Actor is another controller.
type Actor struct {
	Name string
	Kind schema.GroupVersionKind
	// Owns are kinds of objects whose controller owner is acted on after each change.
	Owns []schema.GroupVersionKind
	Act  func(ctx context.Context, c client.Client, obj client.Object) error
	// Follows reports whether an object is also acted on after a change of another one. Optional.
	Follows func(obj client.Object, kind schema.GroupKind, key client.ObjectKey) bool
	// Restores is set for an actor that makes an unavailable workload available again.
	Restores bool
}

// Step is an action of the users, or a wait.
type Step struct {
	Name string
	Do   func(ctx context.Context, c client.Client) error
	// Settle is set for a step that waits until the controller is idle. mayFail is set if the controller is idle, too,
	// while a reconcile fails again and again without a change: the error may be about the spec.
	Settle, MayFail bool
	Sleep           time.Duration
	// Cloud changes the external system. Such a step has a do that fails.
	Cloud func(*world.Cloud)
	// Disturbs is set for a disturbance in a walk of States. It may fail.
	Disturbs bool
}

// Lessons are what one run has taught.
type Lessons struct {
	Access map[*Program]*access.Usage
	// Converters are the conversion webhooks that were registered last, by the version that has registered them.
	Converters map[*Version]http.Handler
	// Uncalled are the paths of webhooks that no configuration names. They are known for runs whose outcome others are
	// compared with.
	Uncalled map[*Program][]string
	// Disturbed are the names of the disturbances that were possible.
	Disturbed []string
}

// accessOf returns what a program has used of its roles in the run.
func (l *Lessons) accessOf(p *Program) *access.Usage {
	if l.Access == nil {
		l.Access = map[*Program]*access.Usage{}
	}
	if l.Access[p] == nil {
		l.Access[p] = &access.Usage{}
	}
	return l.Access[p]
}
