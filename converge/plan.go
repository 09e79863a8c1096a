// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
	"trueup.dev/internal/objects/nilcheck"
)

// plan is a valid scenario, with what earlier runs of it have taught. A run only reads it: what it teaches is a part of
// its outcome.
type plan struct {
	input
	knowledge

	seed uint64
}

// input is a valid scenario. It never changes.
type input struct {
	Scenario

	registry *kinds.Registry
	applier  *apply.Applier
	// usualConverter returns the conversion webhook of the scheme.
	usualConverter func() http.Handler
	// shown are the versions of kinds that events have, for kinds with several versions.
	shown    map[schema.GroupKind]string
	primary  schema.GroupVersionKind
	programs []*sim.Program
	actors   []sim.Actor
	faults   inject.Set
	// selectors limit the caches of kinds.
	selectors map[schema.GroupVersionKind]labels.Selector
	except    []exceptionOf
	// masks are the masks of the scenario.
	masks []state.Mask
	// upgrade is set for runs in which the version of the program changes, and version for runs of one version of an
	// upgrade.
	upgrade *upgrade
	version string
}

// newPlan checks a scenario. The error lists all problems.
func newPlan(s Scenario) (*plan, error) {
	if s.Scheme == nil {
		return nil, errors.New("scenario: Scheme is required")
	}
	first := newProgram(s)
	c := &scenarioCheck{
		plan:    &plan{input: input{Scenario: s, programs: []*sim.Program{first}}, knowledge: newKnowledge()},
		program: first,
	}
	c.reconciler()
	c.kinds()
	c.steps()
	c.disturbances()
	c.world()
	c.faults()
	c.oracles()
	c.exceptions()
	c.admission("", c.Webhooks)
	c.roles("", c.Roles)
	c.furtherPrograms()
	crds := c.definitions()
	p := c.plan
	if p.MaxReconciles <= 0 {
		p.MaxReconciles = 200
	}
	if p.Patience <= 0 {
		p.Patience = 24 * time.Hour
	}
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("scenario: %w", errors.Join(c.problems...))
	}
	var err error
	if p.registry, err = kinds.NewRegistry(s.Scheme, crds...); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	p.applier = apply.New(p.registry)
	p.shown = p.shownVersions()
	p.usualConverter = sync.OnceValue(func() http.Handler {
		return ctrlconversion.NewWebhookHandler(s.Scheme, ctrlconversion.NewRegistry())
	})
	return p, nil
}

// addMask adds a mask, unless the scheme does not have its kind.
func (p *plan) addMask(m Mask) {
	of := state.Mask{Field: m.Field}
	if m.Object != nil {
		var err error
		if of.Kind, err = apiutil.GVKForObject(m.Object, p.Scheme); err != nil {
			return
		}
	}
	p.masks = append(slices.Clip(p.masks), of)
}

// reader returns what compares states of the scenario.
func (p *plan) reader() state.Reader {
	return state.Reader{Registry: p.registry, Applier: p.applier, Masks: p.masks}
}

// scenarioCheck fills in a plan, and collects the problems of its scenario.
type scenarioCheck struct {
	*plan

	// program is the one that is being checked.
	program  *sim.Program
	problems []error
}

func (c *scenarioCheck) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// kindOf returns the kind of the object in a field.
func (c *scenarioCheck) kindOf(field string, obj client.Object) schema.GroupVersionKind {
	if nilcheck.IsNil(obj) {
		c.problem("%s is required", field)
		return schema.GroupVersionKind{}
	}
	gvk, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		c.problem("%s: %w", field, err)
	}
	return gvk
}

func (c *scenarioCheck) reconciler() {
	switch {
	case c.New == nil && c.Setup == nil:
		c.problem("New or Setup is required")
	case c.New != nil && c.Setup != nil:
		c.problem("New and Setup exclude each other")
	}
	if c.Setup != nil && (len(c.Owns) > 0 || len(c.Watches) > 0 || len(c.Filters) > 0 || c.Indexes != nil) {
		c.problem("Owns, Watches, Filters and Indexes are for New: Setup registers its own")
	}
}

func (c *scenarioCheck) kinds() {
	c.primary = c.kindOf("For", c.For)
	for i, obj := range c.Owns {
		c.program.Owns = append(c.program.Owns, c.kindOf(fmt.Sprintf("Owns[%d]", i), obj))
	}
	for i, watch := range c.Watches {
		switch {
		case watch.Requests == nil && watch.NewRequests == nil:
			c.problem("Watches[%d].Requests or NewRequests is required", i)
		case watch.Requests != nil && watch.NewRequests != nil:
			c.problem("Watches[%d].Requests and NewRequests exclude each other", i)
		}
		kind := c.kindOf(fmt.Sprintf("Watches[%d].Object", i), watch.Object)
		of := sim.WatchOf{Kind: kind, Requests: watch.Requests}
		if watch.NewRequests != nil {
			of.NewRequests = func(p *sim.Process) handler.MapFunc { return watch.NewRequests(newEnv(p)) }
		}
		c.program.Watches = append(c.program.Watches, of)
	}
	for i, filter := range c.Filters {
		of := sim.FilterOf{Predicate: filter.Predicate}
		if filter.Object != nil {
			of.Kind = c.kindOf(fmt.Sprintf("Filters[%d].Object", i), filter.Object)
		}
		if filter.Predicate == nil {
			c.problem("Filters[%d].Predicate is required", i)
		}
		c.program.Filters = append(c.program.Filters, of)
	}
	c.uncached("", c.Uncached)
	for i, s := range c.CacheSelectors {
		kind := c.kindOf(fmt.Sprintf("CacheSelectors[%d].Object", i), s.Object)
		if s.Label == nil {
			c.problem("CacheSelectors[%d].Label is required", i)
			continue
		}
		if c.selectors == nil {
			c.selectors = map[schema.GroupVersionKind]labels.Selector{}
		}
		c.selectors[kind] = s.Label
	}
}

// uncached reads the kinds that the client of the program reads from the API server.
func (c *scenarioCheck) uncached(prefix string, objects []client.Object) {
	for i, obj := range objects {
		c.program.Uncached[c.kindOf(fmt.Sprintf("%sUncached[%d]", prefix, i), obj)] = true
	}
}

// steps checks the given objects and the steps, and adds the default steps.
func (c *scenarioCheck) steps() {
	c.Steps = flat(c.Steps)
	noSteps := len(c.Steps) == 0
	for i, obj := range c.Given {
		gvk := c.kindOf(fmt.Sprintf("Given[%d]", i), obj)
		if gvk == c.primary && noSteps {
			c.Steps = append(c.Steps, Delete(obj))
		}
	}
	if noSteps {
		c.Steps = append(append([]Step{Settle()}, c.Steps...), Settle())
	}
	for i, step := range c.Steps {
		if !step.plain.Settle && step.plain.Do == nil && step.plain.Sleep <= 0 {
			c.problem("Steps[%d] does nothing", i)
		}
	}
	if !c.Steps[len(c.Steps)-1].plain.Settle { // without steps, some were added above
		c.Steps = append(slices.Clip(c.Steps), Settle())
	}
}

// world checks the actors and the masks.
func (c *scenarioCheck) world() {
	for i, a := range c.World {
		if a.collector {
			continue
		}
		switch a.Name {
		case "":
			c.problem("World[%d].Name is required", i)
		case phrase.Manager, phrase.User, phrase.AnotherClient:
			c.problem("World[%d].Name must not be %q, which is the name of another client", i, a.Name)
		}
		if a.Act == nil {
			c.problem("World[%d].Act is required", i)
		}
		of := sim.Actor{
			Name: a.Name, Kind: c.kindOf(fmt.Sprintf("World[%d].For", i), a.For), Act: a.Act, Follows: a.follows,
			Restores: a.restores,
		}
		for n, obj := range a.Owns {
			of.Owns = append(of.Owns, c.kindOf(fmt.Sprintf("World[%d].Owns[%d]", i, n), obj))
		}
		c.actors = append(c.actors, of)
	}
	for i, mask := range c.Masks {
		if mask.Field == "" {
			c.problem("Masks[%d].Field is required", i)
		}
		if mask.Object != nil {
			c.kindOf(fmt.Sprintf("Masks[%d].Object", i), mask.Object)
		}
		c.addMask(mask)
	}
}

func (c *scenarioCheck) faults() {
	enabled := inject.SetWhere(func(row inject.Row) bool { return !row.Disabled })
	if c.Consistency == TimeTravel {
		enabled |= inject.SetOf(FaultStaleStart)
	}
	for fault, reason := range c.Without {
		switch {
		case !slices.Contains(inject.All, fault):
			c.problem("Without: unknown fault %q", fault)
		case reason == "":
			c.problem("Without[%s]: a reason is required", fault)
		default:
			enabled &^= inject.SetOf(fault)
		}
	}
	for i, fault := range c.With {
		if !slices.Contains(inject.All, fault) {
			c.problem("With[%d]: unknown fault %q", i, fault)
			continue
		}
		enabled |= inject.SetOf(fault)
	}
	c.plan.faults = enabled
}

func (c *scenarioCheck) oracles() {
	for oracle, reason := range c.Off {
		switch {
		case !slices.Contains(allOracles, oracle):
			c.problem("Off: unknown oracle %q", oracle)
		case reason == "":
			c.problem("Off[%s]: a reason is required", oracle)
		}
	}
}

func (c *scenarioCheck) definitions() []*apiextensionsv1.CustomResourceDefinition {
	crds := []*apiextensionsv1.CustomResourceDefinition{}
	for i, obj := range c.CRDs {
		crd, err := definition(obj)
		if err != nil {
			c.problem("CRDs[%d]: %w", i, err)
			continue
		}
		crds = append(crds, crd)
	}
	return crds
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
			Recorder: p.Permissions, Assigned: p.Assigned,
		}
		c.uncached(field+".", p.Uncached)
		c.admission(field+".", p.Webhooks)
		c.roles(field+".", p.Roles)
		c.programs = append(c.programs, c.program)
	}
}

// disturbances checks the disturbances.
func (c *scenarioCheck) disturbances() {
	seen := map[string]bool{}
	for i, step := range c.Disturbances {
		switch {
		case step.plain.Do == nil:
			c.problem("Disturbances[%d] must be one action of users", i)
		case seen[step.plain.Name]:
			c.problem("Disturbances[%d]: another one is also called %q", i, step.plain.Name)
		}
		seen[step.plain.Name] = true
	}
}

// admission reads the configurations of webhooks of the program.
func (c *scenarioCheck) admission(prefix string, configurations []client.Object) {
	for i, obj := range configurations {
		field := fmt.Sprintf("%sWebhooks[%d]", prefix, i)
		switch obj := obj.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), true, admissionregistrationv1.ValidatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
					MatchPolicy: w.MatchPolicy,
				})
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for n, w := range obj.Webhooks {
				c.webhook(fmt.Sprintf("%s.Webhooks[%d]", field, n), false, w)
			}
		default:
			c.problem("%s: %T is neither a MutatingWebhookConfiguration nor a ValidatingWebhookConfiguration", field, obj)
		}
	}
}

// webhook reads the configuration of a webhook. Both types of configurations have the fields that are read.
func (c *scenarioCheck) webhook(field string, mutating bool, w admissionregistrationv1.ValidatingWebhook) {
	hook := sim.Webhook{
		Name: w.Name, Mutating: mutating, Rules: w.Rules,
		IgnoresFailures: w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore,
		Exact:           w.MatchPolicy != nil && *w.MatchPolicy == admissionregistrationv1.Exact,
	}
	if w.ClientConfig.Service == nil || w.ClientConfig.Service.Path == nil {
		c.problem("%s: ClientConfig.Service.Path is required", field)
		return
	}
	hook.Path = *w.ClientConfig.Service.Path
	if len(w.MatchConditions) > 0 {
		c.problem("%s: MatchConditions are not supported", field)
	}
	var err error
	if hook.Objects, err = selectorOf(w.ObjectSelector); err != nil {
		c.problem("%s.ObjectSelector: %w", field, err)
	}
	if hook.Namespaces, err = selectorOf(w.NamespaceSelector); err != nil {
		c.problem("%s.NamespaceSelector: %w", field, err)
	}
	c.program.Webhooks = append(c.program.Webhooks, hook)
}

// selectorOf returns a selector. One that is absent selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
