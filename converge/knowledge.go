// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/access"
	"trueup.dev/converge/internal/state"
)

// knowledge is what runs have taught about a plan, for further runs.
type knowledge struct {
	// reference is the run without faults, or nil before it.
	reference *reference
	// random are the names that contain random letters.
	random state.RandomNames
	// waits is set if primary objects become ready only when their workloads are available.
	waits bool
	// probesRoles is set while runs find out which rules of roles are missing.
	probesRoles bool
	// read are the kinds that programs read from caches. The caches exist from the start: other controllers of the same
	// process may use them.
	read map[*program][]schema.GroupVersionKind
	// access is what programs have used of their roles.
	access map[*program]*access.Usage
	// converter is the conversion webhook that Setup registered last.
	converter http.Handler
	// disturbed are the names of the disturbances that were possible in a run.
	disturbed map[string]bool
	// failedVersion is the version of an upgrade whose run without faults has failed, or nil.
	failedVersion *plan
}

func newKnowledge() knowledge {
	return knowledge{
		read: map[*program][]schema.GroupVersionKind{}, access: map[*program]*access.Usage{}, disturbed: map[string]bool{},
	}
}

// lessons are what one run has taught.
type lessons struct {
	access map[*program]*access.Usage
	// converters are the conversion webhooks that were registered last, by the version that has registered them.
	converters map[*plan]http.Handler
	// disturbed are the names of the disturbances that were possible.
	disturbed []string
}

// accessOf returns what a program has used of its roles in the run.
func (l *lessons) accessOf(p *program) *access.Usage {
	if l.access == nil {
		l.access = map[*program]*access.Usage{}
	}
	if l.access[p] == nil {
		l.access[p] = &access.Usage{}
	}
	return l.access[p]
}

// remember adds what a run has taught to what is known.
func (p *plan) remember(l lessons) {
	for program, used := range l.access {
		if p.access[program] == nil {
			p.access[program] = &access.Usage{}
		}
		p.access[program].Add(used)
	}
	for version, converter := range l.converters {
		version.converter = converter
	}
	for _, name := range l.disturbed {
		p.disturbed[name] = true
	}
}
