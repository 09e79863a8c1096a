// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/observation"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
)

var _ subReconciler = (*CastResource[client.Object, client.Object])(nil)

// CastResource converts the resource to another type for a sub reconciler. The other type is usually a duck type with
// the fields that several kinds share. The resource is converted through JSON. Changes by the sub reconciler are
// applied to the resource, also when the sub reconciler returns an error. Fields that the resource does not have are
// dropped.
//
// If CastType is an interface, for example client.Object, the sub reconciler receives the resource itself. A sub
// reconciler for any kind of resource can then be used in a tree for one kind.
type CastResource[Type, CastType client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `<CastType>CastResource`.
	Name string

	// Reconciler is called with the converted resource. Required.
	Reconciler SubReconciler[CastType]

	lazyInit sync.Once
	// passThrough reports whether CastType is an interface.
	passThrough bool
}

func (r *CastResource[T, CT]) init() {
	r.lazyInit.Do(func() {
		cast := newEmpty[CT]()
		r.passThrough = nilcheck.IsNilPointer(cast)
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sCastResource", typeName(cast))
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler.
func (r *CastResource[T, CT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *CastResource[T, CT]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *CastResource[T, CT]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *CastResource[T, CT]) describe(d *description) {
	r.init()
	d.is("CastResource", r.Name)
	d.require(given(r.Reconciler), "must define Reconciler")
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler, inside: r.castType})
}

func (r *CastResource[T, CT]) castType(ctx context.Context) context.Context {
	if r.passThrough {
		return ctx
	}
	return StashResourceType(ctx, newEmpty[CT]())
}

// Reconcile runs Reconciler with the converted resource and applies its changes.
func (r *CastResource[T, CT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *CastResource[T, CT]) reconcile(ctx context.Context, resource T) (Result, error) {
	if r.passThrough {
		same, ok := client.Object(resource).(CT)
		if !ok {
			return Result{}, fmt.Errorf("%T does not implement the CastType of %s", resource, r.Name)
		}
		return r.Reconciler.Reconcile(ctx, same)
	}
	cast, err := r.cast(ctx, resource)
	if err != nil {
		return Result{}, err
	}
	before := cast.DeepCopyObject().(CT)

	result, err := r.Reconciler.Reconcile(observation.WithCopy(StashResourceType(ctx, empty.Like(cast)), cast), cast)
	if difference.Equal(before, cast) {
		return result, err
	}
	if applyErr := r.applyChanges(before, cast, resource); applyErr != nil {
		err = joinErrors(err, applyErr)
	}
	return result, err
}

// cast converts the resource. The converted object always carries the kind of the resource: the client and unstructured
// objects need it.
func (r *CastResource[T, CT]) cast(ctx context.Context, resource T) (CT, error) {
	cast := newEmpty[CT]()
	if !resource.GetObjectKind().GroupVersionKind().Empty() {
		return cast, convert(resource, cast)
	}
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil || config.Client == nil {
		// Without a config, no request can be made with the object.
		return cast, convert(resource, cast)
	}
	gvk, err := config.GroupVersionKindFor(resource)
	if err != nil {
		return cast, err
	}
	named := resource.DeepCopyObject().(T)
	named.GetObjectKind().SetGroupVersionKind(gvk)
	return cast, convert(named, cast)
}

// applyChanges applies the change from before to cast to the resource. It does not compare generations: a sub
// reconciler may have patched the finalizers of the resource, which changes its generation and resource version. Fields
// that the resource type does not have are dropped when the result is decoded.
func (r *CastResource[T, CT]) applyChanges(before, cast CT, resource T) error {
	from, err := jsonValue(before)
	if err != nil {
		return err
	}
	to, err := jsonValue(cast)
	if err != nil {
		return err
	}
	original, err := jsonValue(resource)
	if err != nil {
		return err
	}
	changed, err := json.Marshal(carryOver(original, from, to))
	if err != nil {
		return err
	}
	return replaceWith(changed, resource)
}

// convert copies an object to an object of another type, through JSON.
func convert(from, to client.Object) error {
	bytes, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(bytes, to)
}
