// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/nilcheck"
)

// plan is a valid scenario, and what its runs share.
type plan struct {
	Scenario

	registry *kinds.Registry
	applier  *apply.Applier
	primary  schema.GroupVersionKind
	owns     []schema.GroupVersionKind
	watches  []watchOf
	uncached map[schema.GroupVersionKind]bool
	actors   []actorOf
	faults   faultSet
	// settles counts the steps that wait until the controller is idle.
	settles int
	seed    uint64
	// read are the kinds that are read from caches. The caches exist from the start: other controllers of the same process
	// may use them.
	read []schema.GroupVersionKind
	// waits is set if primary objects become ready only when their workloads are available.
	waits bool
	// reference is the run without faults, or nil before it.
	reference *reference
}

type watchOf struct {
	Watch

	kind schema.GroupVersionKind
}

type actorOf struct {
	Actor

	kind schema.GroupVersionKind
}

// newPlan checks a scenario. The error lists all problems.
func newPlan(s Scenario) (*plan, error) {
	if s.Scheme == nil {
		return nil, errors.New("scenario: Scheme is required")
	}
	p := &plan{Scenario: s, uncached: map[schema.GroupVersionKind]bool{}}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	kindOf := func(field string, obj client.Object) schema.GroupVersionKind {
		if nilcheck.IsNil(obj) {
			problem("%s is required", field)
			return schema.GroupVersionKind{}
		}
		gvk, err := apiutil.GVKForObject(obj, s.Scheme)
		if err != nil {
			problem("%s: %w", field, err)
		}
		return gvk
	}

	switch {
	case s.New == nil && s.Setup == nil:
		problem("New or Setup is required")
	case s.New != nil && s.Setup != nil:
		problem("New and Setup exclude each other")
	}
	if s.Setup != nil && (len(s.Owns) > 0 || len(s.Watches) > 0 || s.Indexes != nil) {
		problem("Owns, Watches and Indexes are for New: Setup registers its own")
	}
	p.primary = kindOf("For", s.For)
	for i, obj := range s.Owns {
		p.owns = append(p.owns, kindOf(fmt.Sprintf("Owns[%d]", i), obj))
	}
	for i, watch := range s.Watches {
		if watch.Requests == nil {
			problem("Watches[%d].Requests is required", i)
		}
		p.watches = append(p.watches, watchOf{watch, kindOf(fmt.Sprintf("Watches[%d].Object", i), watch.Object)})
	}
	for i, obj := range s.Uncached {
		p.uncached[kindOf(fmt.Sprintf("Uncached[%d]", i), obj)] = true
	}
	for i, obj := range s.Given {
		gvk := kindOf(fmt.Sprintf("Given[%d]", i), obj)
		if gvk == p.primary && len(s.Steps) == 0 {
			p.Steps = append(p.Steps, Delete(obj))
		}
	}
	if len(s.Steps) == 0 {
		p.Steps = append(append([]Step{Settle()}, p.Steps...), Settle())
	}
	for i, step := range p.Steps {
		if step.settle {
			p.settles++
		} else if step.do == nil && step.sleep <= 0 {
			problem("Steps[%d] does nothing", i)
		}
	}
	if p.settles == 0 || !p.Steps[len(p.Steps)-1].settle {
		p.Steps = append(slices.Clip(p.Steps), Settle())
		p.settles++
	}
	for i, actor := range s.World {
		if actor.collector {
			continue
		}
		if actor.Name == "" {
			problem("World[%d].Name is required", i)
		}
		if actor.Act == nil {
			problem("World[%d].Act is required", i)
		}
		p.actors = append(p.actors, actorOf{actor, kindOf(fmt.Sprintf("World[%d].For", i), actor.For)})
	}
	for i, mask := range s.Masks {
		if mask.Field == "" {
			problem("Masks[%d].Field is required", i)
		}
		if mask.Object != nil {
			kindOf(fmt.Sprintf("Masks[%d].Object", i), mask.Object)
		}
	}
	p.faults = faultsWhere(func(row faultRow) bool { return !row.disabled })
	if s.Consistency == TimeTravel {
		p.faults |= setOf(FaultStaleStart)
	}
	for fault, reason := range s.Without {
		switch {
		case !slices.Contains(allFaults, fault):
			problem("Without: unknown fault %q", fault)
		case reason == "":
			problem("Without[%s]: a reason is required", fault)
		default:
			p.faults &^= setOf(fault)
		}
	}
	for i, fault := range s.With {
		if !slices.Contains(allFaults, fault) {
			problem("With[%d]: unknown fault %q", i, fault)
			continue
		}
		p.faults |= setOf(fault)
	}
	for oracle, reason := range s.Off {
		switch {
		case !slices.Contains(allOracles, oracle):
			problem("Off: unknown oracle %q", oracle)
		case reason == "":
			problem("Off[%s]: a reason is required", oracle)
		}
	}
	crds := []*apiextensionsv1.CustomResourceDefinition{}
	for i, obj := range s.CRDs {
		crd, err := definition(obj)
		if err != nil {
			problem("CRDs[%d]: %w", i, err)
			continue
		}
		crds = append(crds, crd)
	}
	if p.MaxReconciles <= 0 {
		p.MaxReconciles = 200
	}
	if p.Patience <= 0 {
		p.Patience = 24 * time.Hour
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("scenario: %w", errors.Join(problems...))
	}
	var err error
	if p.registry, err = kinds.NewRegistry(s.Scheme, crds...); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	p.applier = apply.New(p.registry)
	return p, nil
}

// definition converts the definition of a custom kind, which may be unstructured.
func definition(obj client.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		return crd, nil
	}
	if nilcheck.IsNil(obj) {
		return nil, errors.New("is required")
	}
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("%T %q is not a CustomResourceDefinition", obj, kind)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, runtime.DefaultUnstructuredConverter.FromUnstructured(content, crd)
}
