// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/informer"
	"trueup.dev/internal/objects/finalizername"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// problems collects the problems of a config.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// addAll adds the problems of a part of the config, which begin with the names of its fields.
func (p *problems) addAll(part string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			p.add("%s.%w", part, err)
		}
	}
}

// validate returns the kinds with handlers, and every problem.
func (c *AppConfig) validate() ([]*handled, error) {
	p := problems{}
	if c.Name != "" {
		for _, problem := range kvalidation.IsDNS1123Subdomain(c.Name) {
			p.add("Name %q is not a DNS name: %s", c.Name, problem)
		}
	}
	if c.Shard != nil && (c.LeaderElection.Namespace != "" || c.LeaderElection.ID != "") {
		p.add("LeaderElection.Namespace and LeaderElection.ID must be empty with Shard, which holds a Lease of its own")
	}
	p.addAll("InformerConfig.InformerOptions", c.InformerConfig.InformerOptions.Validate(context.Background()))
	c.validateManaged(&p)
	c.validateRoutes(&p)
	all := c.handled(&p)
	c.validateHandled(&p, all)
	for _, kind := range slices.SortedFunc(maps.Keys(c.Converters), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		converter := c.Converters[kind]
		if nilcheck.IsNil(converter) {
			p.add("Converters[%s] is nil", kind)
		} else if v, ok := converter.(validation.Validator); ok {
			if err := v.Validate(context.Background()); err != nil {
				p.add("Converters[%s] is not valid: %w", kind, err)
			}
		}
	}
	return all, errors.Join(p...)
}

// nameOrGroup returns the name of the app. Defaults to the group of its managed kinds, if all have the same.
func (c *AppConfig) nameOrGroup() string {
	name := c.Name
	for i := range c.ManagedKinds {
		kind := c.ManagedKinds[i].Kind
		switch {
		case c.Name != "" || kind.Schema == nil:
		case name != "" && name != kind.Group():
			return ""
		default:
			name = kind.Group()
		}
	}
	return name
}

// validateManaged checks managed kinds, except for their handlers.
func (c *AppConfig) validateManaged(p *problems) {
	seen := map[schema.GroupVersionKind]string{}
	handling := map[schema.GroupKind]string{}
	for i := range c.ManagedKinds {
		k, field := &c.ManagedKinds[i], fmt.Sprintf("ManagedKinds[%d]", i)
		if !isKind(p, field, k.Kind) {
			continue
		}
		if first, ok := seen[k.Kind.GroupVersionKind()]; ok {
			p.add("%s.Kind is %s, which is a duplicate of %s", field, k.Kind, first)
			continue
		}
		seen[k.Kind.GroupVersionKind()] = field
		for _, hook := range []struct {
			name string
			hook any
		}{{"Mutator", k.Mutator}, {"Validator", k.Validator}} {
			if hook.hook != nil && nilcheck.IsNil(hook.hook) {
				p.add("%s.%s is a nil %T", field, hook.name, hook.hook)
			}
		}
		if k.Watcher == nil && k.Reconciler == nil && k.SubReconciler == nil {
			continue // not watched
		}
		if first, ok := handling[k.Kind.GroupKind()]; ok {
			p.add("%s has a handler for %s, but %s has one already: a handler receives objects of all versions, so "+
				"only one version may have a handler",
				field, k.Kind.GroupKind(), first)
			continue
		}
		handling[k.Kind.GroupKind()] = field
	}
}

func isKind(p *problems, field string, kind resource.Kind) bool {
	if kind.Schema == nil {
		p.add("%s.Kind is required", field)
		return false
	}
	if err := kind.Validate(); err != nil {
		p.add("%s.Kind is not valid: %w", field, err)
		return false
	}
	return true
}

// handled returns the kinds with handlers.
func (c *AppConfig) handled(p *problems) []*handled {
	var all []*handled
	for i := range c.ManagedKinds {
		k := &c.ManagedKinds[i]
		if k.Watcher == nil && k.Reconciler == nil && k.SubReconciler == nil || k.Kind.Schema == nil ||
			k.Kind.Validate() != nil {
			continue
		}
		all = append(all, &handled{
			field: fmt.Sprintf("ManagedKinds[%d]", i), managed: true, kind: k.Kind, watcher: k.Watcher,
			reconciler: k.Reconciler, subReconciler: k.SubReconciler,
			options: k.ReconcileOptions, opinionated: !k.ReconcileOptions.UsePlain,
		})
	}
	for i := range c.UnmanagedKinds {
		k, field := &c.UnmanagedKinds[i], fmt.Sprintf("UnmanagedKinds[%d]", i)
		if !isKind(p, field, k.Kind) {
			continue
		}
		if k.Watcher == nil && k.Reconciler == nil && k.SubReconciler == nil {
			p.add("%s must have one of .Watcher, .Reconciler and .SubReconciler", field)
			continue
		}
		all = append(all, &handled{
			field: field, kind: k.Kind, watcher: k.Watcher, reconciler: k.Reconciler, subReconciler: k.SubReconciler,
			options: k.ReconcileOptions, opinionated: k.ReconcileOptions.UseOpinionated,
		})
	}
	names := map[string]int{}
	for _, h := range all {
		if _, given := h.given(); given || h.subReconciler != nil {
			h.opinionated = false // no finalizer is necessary, or the handler sets its own
		} else if _, ok := h.opinionatedReconciler(); ok {
			h.opinionated = true
		}
		h.name = strings.TrimSuffix(h.kind.Plural()+"."+h.kind.Group(), ".")
		if names[h.name]++; names[h.name] > 1 {
			h.name = fmt.Sprintf("%s-%d", h.name, names[h.name])
		}
	}
	return all
}

func (c *AppConfig) validateHandled(p *problems, all []*handled) {
	keepers := map[string]string{}
	first := map[schema.GroupVersionKind]*handled{}
	for _, h := range all { // they may share an informer
		gvk := h.kind.GroupVersionKind()
		if before := first[gvk]; before == nil {
			first[gvk] = h
		} else if before.options.WhileServed != h.options.WhileServed {
			p.add("%s.ReconcileOptions.WhileServed must be %t, as for %s, which is the same kind",
				h.field, before.options.WhileServed, before.field)
		}
	}
	for _, h := range all {
		h.validate(p)
		if !h.opinionated {
			continue
		}
		h.finalizer = h.options.Finalizer
		if h.finalizer == "" {
			h.finalizer = c.InformerConfig.finalizer(c.Name, h.kind)
		}
		c.validateFinalizers(p, h)
		key := h.kind.GroupKind().String() + " " + h.finalizer
		if first, ok := keepers[key]; ok && !h.managed { // validateManaged reports two managed ones
			p.add("%s and %s use the same finalizer %s for %s: each must have its own, see ReconcileOptions.Finalizer",
				first, h.field, h.finalizer, h.kind.GroupKind())
		}
		keepers[key] = h.field
	}
}

// validateFinalizers checks the names of the finalizers of a kind.
func (c *AppConfig) validateFinalizers(p *problems, h *handled) {
	o, options := &h.options, h.field+".ReconcileOptions"
	seen := map[string]string{}
	check := func(field, name string) {
		if fault := finalizername.Fault(name, clientgoscheme.Scheme.IsGroupRegistered(h.kind.Group())); fault != "" {
			p.add("%s is %q, which is not the name of a finalizer, such as example.com/myapp-widgets: %s", field, name, fault)
		} else if first, ok := seen[name]; ok {
			p.add("%s is %q, which is a duplicate of %s", field, name, first)
		}
		seen[name] = field
	}
	switch {
	case o.Finalizer != "":
		check(options+".Finalizer", o.Finalizer)
	case c.InformerConfig.FinalizerSupplier != nil:
		check("the finalizer that InformerConfig.FinalizerSupplier returns for "+h.field, h.finalizer)
	case c.Name == "":
		p.add("Name is required, because the finalizer of %s is derived from it", h.field)
	case len(kvalidation.IsDNS1123Subdomain(c.Name)) == 0: // otherwise the invalid name is already reported
		check(
			"the finalizer of "+h.field+", derived from the names of the app and the kind, because "+
				options+".Finalizer is empty,",
			h.finalizer,
		)
	}
	for i, alias := range o.FinalizerAliases {
		switch alias {
		case "":
			p.add("%s.FinalizerAliases[%d] is empty", options, i)
		case h.finalizer:
			p.add("%s.FinalizerAliases[%d] is %q, which is the current finalizer", options, i, alias)
		}
	}
	if o.InProgressFinalizer != "" {
		check(options+".InProgressFinalizer", o.InProgressFinalizer)
	}
}

func (c *AppInformerConfig) finalizer(app string, kind resource.Kind) string {
	if c.FinalizerSupplier != nil {
		return c.FinalizerSupplier(kind.Schema)
	}
	group := kind.Group()
	if group == "" {
		group = "core"
	}
	return fmt.Sprintf("%s/%s-%s", group, app, kind.Plural())
}

func (h *handled) validate(p *problems) {
	o, options := &h.options, h.field+".ReconcileOptions"
	isSubReconciler := h.subReconciler != nil
	switch set := setOf(
		field{".Watcher", h.watcher != nil}, field{
			".Reconciler", h.reconciler != nil,
		}, field{".SubReconciler", isSubReconciler},
	); len(set) {
	case 2:
		p.add("%s%s and %s are both set", h.field, set[0], set[1])
	case 3:
		p.add("%s%s, %s and %s are all set", h.field, set[0], set[1], set[2])
	}
	for _, handler := range []struct {
		name    string
		handler any
	}{{"Watcher", h.watcher}, {"Reconciler", h.reconciler}, {"SubReconciler", h.subReconciler}} {
		if handler.handler != nil && nilcheck.IsNil(handler.handler) {
			p.add("%s.%s must not be nil or wrap nil", h.field, handler.name)
		}
	}
	p.addAll(options, informer.Options{
		LabelFilters: o.LabelFilters, FieldSelectors: o.FieldSelectors, CacheResyncInterval: o.CacheResyncInterval,
	}.Validate(context.Background()))
	if o.Namespace != "" {
		for _, fault := range kvalidation.IsDNS1123Label(o.Namespace) {
			p.add("%s.Namespace: %q is not the name of a namespace: %s", options, o.Namespace, fault)
		}
		if h.kind.Scope() == resource.ClusterScope {
			p.add("%s.Namespace: must be empty, %s is cluster-scoped", options, h.kind)
		}
	}
	if o.UsePlain && o.UseOpinionated {
		p.add("%s.UsePlain and .UseOpinionated are both set", options)
	}
	if o.MaxConcurrentReconciles < 0 {
		p.add("%s.MaxConcurrentReconciles must not be negative", options)
	}
	if !h.opinionated {
		for _, name := range setOf(
			field{"Finalizer", o.Finalizer != ""}, field{"FinalizerAliases", len(o.FinalizerAliases) > 0},
			field{"InProgressFinalizer", o.InProgressFinalizer != ""},
		) {
			p.add(
				"%s.%s has no effect on a plain handler, an Opinionated or a SubReconciler: the app sets no finalizer "+
					"for it",
				options, name,
			)
		}
	}
	if isSubReconciler {
		for _, name := range setOf(
			field{"UseOpinionated", o.UseOpinionated}, field{"React", o.React != 0}, field{"RetryPolicy", o.RetryPolicy != nil},
			field{"RetryDequeuePolicy", o.RetryDequeuePolicy != nil}, field{"OnExhausted", o.OnExhausted != nil},
		) {
			p.add("%s.%s has no effect on a SubReconciler", options, name)
		}
	}
}

// field is a field of a config.
type field struct {
	name  string
	isSet bool
}

func setOf(fields ...field) []string {
	var set []string
	for _, f := range fields {
		if f.isSet {
			set = append(set, f.name)
		}
	}
	return set
}
