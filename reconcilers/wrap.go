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
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
)

var _ subReconciler = (*Advice[client.Object])(nil)

// Advice adds functions that run before, after or around a subreconciler. The term comes from aspect-oriented
// programming.
type Advice[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Advice`.
	Name string

	// Setup registers watches and indexes that the functions need. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the advised reconciler. Required.
	Reconciler SubReconciler[Type]

	// Before is called first. If it returns a context, the reconciler uses that context. If it returns an error, Advice
	// returns the result and the error immediately. Optional.
	Before func(ctx context.Context, resource Type) (context.Context, Result, error)

	// Around is called instead of Reconciler. It can call Reconciler once, several times or not at all. Defaults to
	// calling it once.
	Around func(ctx context.Context, resource Type, reconciler SubReconciler[Type]) (Result, error)

	// After is called last, unless Before failed. It returns the final result and error. Optional.
	After func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	lazyInit sync.Once
}

func (r *Advice[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Advice"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *Advice[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required field. If ctx requests recursion, it also validates Reconciler.
func (r *Advice[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Advice[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Advice[T]) describe(d *description) {
	r.init()
	d.is("Advice", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler})
}

// Reconcile runs Before, Around and After.
func (r *Advice[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Advice[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	before := Result{}
	if r.Before != nil {
		replaced, result, err := r.Before(ctx, resource)
		if err != nil {
			return result, err
		}
		if replaced != nil {
			ctx = replaced
		}
		before = result
	}
	var result Result
	var err error
	if r.Around != nil {
		result, err = r.Around(ctx, resource, r.Reconciler)
	} else {
		result, err = r.Reconciler.Reconcile(ctx, resource)
	}
	result = AggregateResults(before, result)
	if r.After != nil {
		return r.After(ctx, resource, result, err)
	}
	return result, err
}

var _ subReconciler = (*CastResource[client.Object, client.Object])(nil)

// CastResource converts the resource to another type for a subreconciler. The other type is usually a duck type with
// the fields that several kinds share. The resource is converted through JSON. Changes by the subreconciler are
// applied to the resource, also when the subreconciler returns an error. Fields that the resource does not have are
// dropped.
//
// If CastType is an interface, for example client.Object, the subreconciler receives the resource itself. A
// subreconciler for any kind of resource can then be used in a tree for one kind.
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

// applyChanges applies the change from before to cast to the resource. It does not compare generations: a
// subreconciler may have patched the finalizers of the resource, which changes its generation and resource version.
// Fields that the resource type does not have are dropped when the result is decoded.
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

var _ subReconciler = (*WithConfig[client.Object])(nil)

// WithConfig runs nested reconcilers with another config, for example with other permissions or for another cluster.
// The original config still writes the resource, its finalizers and its events, see [RetrieveOriginalConfig].
//
// Children are watched in the cluster of the config. Add the cluster to the manager:
//
//	err := mgr.Add(remote)               // a cluster.Cluster, so that it starts with the manager
//	there := config.WithCluster(remote)
//
// To watch other objects in that cluster, use WatchesRawSource and a source.Kind with the cache of the cluster: the
// watches of the builder are in the cluster of the manager.
type WithConfig[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `WithConfig`.
	Name string

	// Config returns the config to use. Its argument is the current config. It is called once during setup and once per
	// request, so it should return an existing config: call [Config.WithCluster] in advance. Required.
	Config func(ctx context.Context, config Config) (Config, error)

	// Reconciler runs with the returned config. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

func (r *WithConfig[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "WithConfig"
		}
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler with the config.
func (r *WithConfig[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *WithConfig[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *WithConfig[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *WithConfig[T]) describe(d *description) {
	r.init()
	d.is("WithConfig", r.Name)
	d.require(r.Config != nil, "must define Config")
	d.require(given(r.Reconciler), "must define Reconciler")
	d.nests(nested{
		role: "Reconciler", reconciler: r.Reconciler, ownConfig: true, setUpIn: r.withConfig,
		inside: func(ctx context.Context) context.Context { return belowConfig(ctx, r) },
	})
}

// Reconcile runs Reconciler with the config.
func (r *WithConfig[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(ctx context.Context, resource T) (Result, error) {
		ctx, err := r.withConfig(ctx)
		if err != nil {
			return Result{}, err
		}
		return r.Reconciler.Reconcile(ctx, resource)
	})
}

func (r *WithConfig[T]) withConfig(ctx context.Context) (context.Context, error) {
	current, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := r.Config(ctx, current)
	if err != nil {
		return nil, err
	}
	s := scopeFrom(ctx)
	s.config, s.inventory = &config, nil
	return s.onto(ctx), nil
}

var _ subReconciler = (*OverrideSetup[client.Object])(nil)

// OverrideSetup runs a subreconciler but does not set it up, for example to leave out its watches.
type OverrideSetup[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `SkipSetup`.
	Name string

	// Setup is called instead of the setup of Reconciler. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler runs as usual but is never set up. Custom reconcilers in it are not validated during setup, because
	// they may require their own setup. At least one of Setup and Reconciler is required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
}

func (r *OverrideSetup[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "SkipSetup"
		}
	})
}

// SetupWithManager validates the reconciler and calls Setup.
func (r *OverrideSetup[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *OverrideSetup[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *OverrideSetup[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *OverrideSetup[T]) describe(d *description) {
	r.init()
	d.is("OverrideSetup", r.Name)
	d.require(r.Setup != nil || r.Reconciler != nil, "must implement at least one of Setup or Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Reconciler", reconciler: r.Reconciler, inside: setupcheck.NeverSetUp, notSetUp: true})
}

// Reconcile runs Reconciler.
func (r *OverrideSetup[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.Reconciler == nil {
		return Result{}, nil
	}
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.Reconciler.Reconcile)
}
