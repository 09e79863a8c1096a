// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builtin is a row of the table of built-in kinds.
type builtin struct {
	plural      string
	cluster     bool
	status      bool
	generations bool
	// conditional kinds require a resource version in updates.
	conditional bool
	orphans     bool
	graceful    bool
	scale       *Scale
	// createsOnUpdate reports whether an update of an object that does not exist creates it.
	createsOnUpdate bool
	// keepsStatus reports whether objects are created with their status.
	keepsStatus bool
	// keepsMetadata reports whether a write to the status does not change metadata.
	keepsMetadata bool
	strategy      strategy
}

// strategy is a strategyOf a type.
type strategy interface {
	rules(k *Kind, b builtin) rules
}

// strategyOf is the behavior of a kind in addition to that of all kinds. All fields are optional.
type strategyOf[T client.Object] struct {
	defaults func(T)
	create   func(T)
	update   func(obj, old T)
	// changed reports whether the desired state differs. By default, all fields except metadata and status are desired
	// state.
	changed      func(obj, old T) bool
	updateStatus func(obj, old T)
	// validate applies to objects that are created or, unless replaceValidate is set, updated.
	validate func(T) field.ErrorList
	// validateUpdate adds to validate, or replaces it.
	validateUpdate  func(obj, old T) field.ErrorList
	replaceValidate bool
	// exact makes validateUpdate distinguish empty from absent content.
	exact                bool
	validateStatusUpdate func(obj, old T) field.ErrorList
	// statusFirst orders errors about a status before errors about the metadata sent with it.
	statusFirst bool
}

// builtinScheme has the Go types of all built-in kinds, independent of the scheme of a registry.
var builtinScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err) // static data of libraries
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
})

// builtinGroups are the groups without custom kinds.
var builtinGroups = sync.OnceValue(func() map[string]bool {
	groups := map[string]bool{}
	for gvk := range builtinScheme().AllKnownTypes() {
		groups[gvk.Group] = true
	}
	return groups
})

func newBuiltin(gvk schema.GroupVersionKind, b builtin) *Kind {
	k := &Kind{
		GroupVersionKind: gvk, Plural: b.plural, Singular: strings.ToLower(gvk.Kind), Namespaced: !b.cluster,
		Status: b.status, Generations: b.generations,
		UnconditionalUpdate: !b.conditional, CreateOnUpdate: b.createsOnUpdate, keepsStatus: b.keepsStatus,
		Orphans: b.orphans, Graceful: b.graceful, Scale: b.scale,
	}
	k.protobuf = clientgoscheme.Scheme.Recognizes(gvk)
	if b.strategy == nil {
		b.strategy = strategyOf[client.Object]{}
	}
	k.layout = newLayout(builtinScheme().AllKnownTypes()[gvk])
	k.rules = b.strategy.rules(k, b)
	return k
}

// builtinRules are rules for objects of the built-in Go types.
type builtinRules[T client.Object] struct {
	strategy strategyOf[T]
	layout   *layout
	builtin  builtin
	name     validation.ValidateNameFunc
}

func (s strategyOf[T]) rules(k *Kind, b builtin) rules {
	return &builtinRules[T]{strategy: s, layout: k.layout, builtin: b, name: nameOf(k.Kind)}
}

func (r *builtinRules[T]) defaults(obj client.Object) error {
	if r.strategy.defaults != nil {
		r.strategy.defaults(obj.(T))
	}
	return nil
}

func (r *builtinRules[T]) create(obj client.Object) {
	if r.strategy.create != nil {
		r.strategy.create(obj.(T))
	}
}

func (r *builtinRules[T]) update(obj, old client.Object) bool {
	if r.strategy.update != nil {
		r.strategy.update(obj.(T), old.(T))
	}
	switch {
	case !r.builtin.generations:
		return false
	case r.strategy.changed != nil:
		return r.strategy.changed(obj.(T), old.(T))
	}
	return !r.layout.equalOthers(obj, old)
}

func (r *builtinRules[T]) updateStatus(obj, old client.Object) {
	r.layout.setOthers(obj, old)
	if r.builtin.keepsMetadata {
		metav1.ResetObjectMetaForStatus(obj, old)
	}
	if r.strategy.updateStatus != nil {
		r.strategy.updateStatus(obj.(T), old.(T))
	}
}

// Upstream: k8s.io/apiserver/pkg/registry/rest/create.go: BeforeCreate
func (r *builtinRules[T]) validate(obj client.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, !r.builtin.cluster, r.name, metaPath)
	errs = append(errs, qualifiedFinalizers(obj)...)
	if r.strategy.validate != nil {
		errs = append(errs, r.strategy.validate(obj.(T))...)
	}
	return errs
}

// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: BeforeUpdate
func (r *builtinRules[T]) validateUpdate(obj, old client.Object, status bool) field.ErrorList {
	errs := append(r.layout.validateMetaUpdate(obj, old), qualifiedFinalizers(obj)...)
	add := func(validate func(obj, old T) field.ErrorList) {
		if validate != nil {
			errs = append(errs, validate(obj.(T), old.(T))...)
		}
	}
	if status {
		metaErrs := errs
		if r.strategy.statusFirst {
			errs = nil
		}
		add(r.strategy.validateStatusUpdate)
		if r.strategy.statusFirst {
			errs = append(errs, metaErrs...)
		}
		return errs
	}
	if !r.strategy.exact && r.layout.equalOthers(obj, old) {
		return errs // unchanged content is valid
	}
	if r.strategy.validate != nil && !r.strategy.replaceValidate {
		errs = append(errs, r.strategy.validate(obj.(T))...)
	}
	add(r.strategy.validateUpdate)
	return errs
}
