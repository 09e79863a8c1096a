// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/validation"
)

var (
	_ ObjectManager[client.Object] = (*ApplyingObjectManager[client.Object])(nil)
	_ FinalizerHolder              = (*ApplyingObjectManager[client.Object])(nil)
	_ validation.Validator         = (*ApplyingObjectManager[client.Object])(nil)
)

// ApplyingObjectManager is an [ObjectManager] that uses server-side apply: it sends only the fields that the desired
// object sets, and owns only these. Other clients can set other fields, and defaults of the API server are not drift. A
// field that the desired object no longer sets is removed, unless it has another owner.
//
// The Go type of a desired object decides which of its fields are set: a pointer that is not nil, a list or map that is
// not nil and not left out of the JSON form, and a number, string or boolean that is not the zero value. To set such a
// zero value, return the desired object from Configuration. The content of an unstructured object is applied as it is.
// The status, and the metadata that the API server sets, are never applied.
//
// The manager sends no request without an effect. It compares the desired object with the managed fields and values of
// the actual object, also after a restart. It knows the defaults within lists that are owned as a whole, as
// [UpdatingObjectManager] does. If a mutating webhook changes what was applied, the manager remembers the result until
// one hour after the last use; after a restart it applies such an object once more. If a webhook keeps the old value of
// each changed field, the error is a [FieldsKeptError], unless the server would store these values for a new object,
// too, which a dry run shows. If the cache strips managed fields, the manager reads each changed object from the API
// server.
//
// The desired object must have a name: the API server does not generate names for applied objects. An existing object
// that is not the actual object is not taken over: Manage returns an AlreadyExists error, as a creation does.
//
// Events on the reconciled resource: Normal Created, Updated, Deleted; Warning CreationFailed, UpdateFailed,
// DeleteFailed; Warning FieldsKept if the server stores other values, also for new objects. No event is recorded for an
// error that matches [ErrQuiet].
//
// RBAC, with the group and the plural of the managed kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;patch;delete
type ApplyingObjectManager[Type client.Object] struct {
	// Name identifies the manager in logs. Defaults to `<Type>ApplyingObjectManager`.
	Name string

	// Type is the kind of the managed objects. Defaults to the type parameter; required for unstructured objects.
	Type Type

	// FieldOwner is the name under which the API server records the fields that this controller owns. If it changes, add
	// the name before to FormerOwners. Two steps that apply fields of one object need different names: with the same name
	// each would remove the fields of the other, so the second one fails. Defaults to [Config].FieldOwner of the root
	// reconciler.
	FieldOwner string

	// FormerOwners are the field managers under which this controller wrote the objects before: with server-side apply,
	// an earlier FieldOwner; with creations and updates, the file name of its binary, unless it set another name. Their
	// fields are moved to FieldOwner with one additional request for each object. Otherwise the controller could not
	// change or remove them. The names in [Config.WithFormerFieldOwners] are added, and so are the names that this
	// package used by default. Optional.
	FormerOwners []string

	// Conflicts is what happens if another client owns a field and has set another value. Defaults to
	// [FailOnConflict].
	Conflicts ConflictPolicy

	// ConflictsAt replaces Conflicts for fields and everything below them, for example
	// {"spec.replicas": GiveWayOnConflict} for a Deployment that a HorizontalPodAutoscaler scales. The longest path
	// that matches is used. Optional.
	ConflictsAt map[string]ConflictPolicy

	// Finalizer is added to the reconciled resource before an object is created or changed. It is removed when no object
	// exists and none is desired. It must be unique and stable, see [WithFinalizer]. Optional.
	Finalizer string

	// TrackDesired makes changes of the managed object trigger the reconciled resource. It is needed if the object has
	// no owner reference. Defaults to false.
	TrackDesired bool

	// Configuration returns the apply configuration of a desired object. It can set fields to zero values that the Go
	// type of the object leaves out. It must return the same configuration for equal objects. Defaults to the fields that
	// the desired object sets.
	Configuration func(desired Type) (runtime.ApplyConfiguration, error)

	// Sanitize returns the loggable part of an object. By default, only its kind and name, and the names of changed
	// fields, are logged. Optional.
	Sanitize func(child Type) any

	lazyInit sync.Once
	memory   appliedMemory[Type]
	comparer comparer[client.Object]
	// alternations are only used by a manager that applies an object twice in a request.
	alternations alternations
}

func (r *ApplyingObjectManager[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sApplyingObjectManager", typeName(r.Type))
		}
	})
}

// SetupWithManager validates the manager. If TrackDesired is set, it watches the managed kind.
func (r *ApplyingObjectManager[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return everyProblem(err)
	}
	if r.TrackDesired {
		config := RetrieveConfigOrDie(ctx)
		config.watch(mgr, bldr, watchable(r.Type, config.Scheme()), EnqueueTracked(ctx))
	}
	return nil
}

// Validate checks the fields. The context must hold a config.
func (r *ApplyingObjectManager[T]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	config := RetrieveConfigOrDie(ctx)
	switch {
	case nilcheck.IsNilPointer(r.Type):
		problems.add("ApplyingObjectManager %q must define Type", r.Name)
	case config.Client != nil && duck.IsDuck(r.Type, config.Scheme()):
		problems.add("ApplyingObjectManager %q must not use a duck type, which lacks fields to apply", r.Name)
	}
	if !r.Conflicts.valid() {
		problems.add("ApplyingObjectManager %q must define a known policy as Conflicts, not %q", r.Name, r.Conflicts)
	}
	for _, path := range sortedKeys(r.ConflictsAt) {
		if policy := r.ConflictsAt[path]; policy == "" || !policy.valid() {
			problems.add("ApplyingObjectManager %q must define a known policy as ConflictsAt[%q], not %q", r.Name, path, policy)
		}
	}
	if owner := r.FieldOwner; len(owner) > maxFieldOwner {
		problems.add("ApplyingObjectManager %q must define a FieldOwner of at most %d bytes, it has %d",
			r.Name, maxFieldOwner, len(owner))
	}
	return problems.err()
}

// HeldFinalizer returns Finalizer. See [FinalizerHolder].
func (r *ApplyingObjectManager[T]) HeldFinalizer() string {
	return r.Finalizer
}

// Manage creates, changes or deletes the object. See [ObjectManager].
func (r *ApplyingObjectManager[T]) Manage(ctx context.Context, resource client.Object, actual, desired T) (T, error) {
	return r.manage(ctx, resource, actual, desired, handling{})
}

// manage implements Manage. If actual is shared with a cache, it returns a copy.
func (r *ApplyingObjectManager[T]) manage(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	r.init()
	var none T
	w := newWriter(ctx, r.Name, resource)
	w.how = how
	if nilcheck.IsNilPointer(desired) {
		if !exists(actual) {
			return none, ClearFinalizer(ctx, resource, r.Finalizer)
		}
		if actual.GetDeletionTimestamp() != nil {
			return none, nil
		}
		if err := w.delete(actual); err != nil {
			return none, err
		}
		r.memory.forget(actual.GetUID())
		return none, nil
	}
	if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
		return none, err
	}
	a := application[T]{writer: w, manager: r, owner: r.owner(ctx), desired: desired, shared: how.shared}
	if !exists(actual) {
		return a.create()
	}
	return a.update(actual)
}

// application applies one desired object.
type application[T client.Object] struct {
	writer
	manager *ApplyingObjectManager[T]
	owner   string
	desired T
	shared  bool
}

// document returns the content of the apply configuration.
func (a application[T]) document() (map[string]any, error) {
	var source runtime.Object = a.desired
	content := map[string]any{}
	if configure := a.manager.Configuration; configure != nil {
		configuration, err := configure(a.desired.DeepCopyObject().(T))
		if err != nil {
			return nil, fmt.Errorf("the apply configuration of %s: %w", identify(a.desired), err)
		}
		data, err := json.Marshal(configuration)
		if err == nil {
			err = json.Unmarshal(data, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("the apply configuration of %s: %w", identify(a.desired), err)
		}
		// Owner references and labels that reconcilers add are fields of the desired object.
		metadata, err := ownership.Document(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: a.desired.GetName(), Namespace: a.desired.GetNamespace(), Labels: a.desired.GetLabels(),
			Annotations: a.desired.GetAnnotations(), OwnerReferences: a.desired.GetOwnerReferences(),
			Finalizers: a.desired.GetFinalizers(),
		}})
		if err != nil {
			return nil, err
		}
		content["metadata"] = metadata["metadata"]
		source = &unstructured.Unstructured{Object: content}
	}
	document, err := ownership.Document(source)
	if err != nil {
		return nil, fmt.Errorf("the fields of %s: %w", identify(a.desired), err)
	}
	gvk, err := a.config.GroupVersionKindFor(a.desired)
	if err != nil {
		return nil, err
	}
	document["apiVersion"], document["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return document, nil
}

func (a application[T]) create() (none T, err error) {
	failed := func(err error) (T, error) {
		return none, a.failed(err, "unable to create resource", "CreationFailed", "create", a.desired)
	}
	if err := a.mustBeAlone(); err != nil {
		return failed(err)
	}
	a.log.Info("creating resource", "resource", a.describe(a.desired))
	document, err := a.document()
	if err != nil {
		return failed(err)
	}
	if err := a.mustNotExist(); err != nil {
		return failed(err)
	}
	stored, err := a.apply(document, false)
	if err != nil {
		return failed(err)
	}
	if a.manager.TrackDesired {
		a.track(stored)
	}
	a.succeeded("Created", stored)
	return a.remember(document, stored, false)
}

// mustNotExist returns an error if the desired object exists: an apply would take it over.
func (a application[T]) mustNotExist() error {
	name := a.desired.GetName()
	if name == "" {
		return fmt.Errorf("%s must have a name: an ApplyingObjectManager cannot generate one", identify(a.desired))
	}
	if a.config.APIReader == nil {
		return nil
	}
	existing := empty.Like(a.manager.Type)
	switch err := a.config.APIReader.Get(a.ctx, client.ObjectKeyFromObject(a.desired), existing); {
	case apierrs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	gvk, err := a.config.GroupVersionKindFor(a.desired)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	if mapping, err := a.config.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		resource = mapping.Resource
	}
	return apierrs.NewAlreadyExists(resource.GroupResource(), name)
}

// apply sends a document and returns the object that the server has stored.
func (a application[T]) apply(document map[string]any, force bool) (stored T, err error) {
	request := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document)}
	options := []client.ApplyOption{client.FieldOwner(a.owner)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	if err := a.config.Apply(a.ctx, client.ApplyConfigurationFromUnstructured(request), options...); err != nil {
		if conflicts := fieldConflicts(err); len(conflicts) > 0 {
			return stored, a.conflict(conflicts)
		}
		return stored, err
	}
	return a.typed(request.Object)
}

func (a application[T]) conflict(conflicts []FieldConflict) error {
	return &FieldConflictError{Object: identify(a.desired), FieldOwner: a.owner, Conflicts: conflicts}
}

// typed returns an object with the given content.
func (a application[T]) typed(content map[string]any) (T, error) {
	obj := empty.Like(a.manager.Type)
	if u, ok := any(obj).(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return obj, nil
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

func content(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

func (a application[T]) describe(obj T) any {
	if a.log.Enabled() && a.manager.Sanitize != nil {
		return a.manager.Sanitize(obj.DeepCopyObject().(T))
	}
	return identify(obj)
}

func (a application[T]) update(actual T) (none T, err error) {
	if a.manager.TrackDesired {
		a.track(actual)
	}
	failed := func(err error) (T, error) {
		return none, a.failed(err, "unable to update resource", "UpdateFailed", "update", actual)
	}
	if err := a.mustBeAlone(); err != nil {
		return failed(err)
	}
	if a.manager.memory.inSync(actual, a.desired) {
		return a.inSync(actual), nil
	}
	document, err := a.document()
	if err != nil {
		return failed(err)
	}
	live, err := a.withManagedFields(actual)
	if err != nil {
		return failed(err)
	}
	plan, err := a.plan(document, live)
	if err != nil {
		return failed(err)
	}
	if plan.inSync {
		if plan.requested {
			return a.answered(live, document, plan, failed)
		}
		a.manager.memory.verified(actual, a.desired, plan.differences)
		return a.inSync(actual), nil
	}

	a.log.Info("updating resource", "resource", a.describe(a.desired), "changedFields", paths(plan.differences))
	plan.document["metadata"] = identified(plan.document["metadata"], live, plan.locked)
	stored, err := a.apply(plan.document, plan.force)
	if err != nil {
		return failed(err)
	}
	limited := false
	if inController(a.ctx) && !plan.requested {
		// Without the values that are only defaults. An error is returned by the next reconcile.
		if done, err := a.plan(document, stored); err == nil && !done.inSync {
			if limited, err = a.judge(actual, stored, document, plan.differences, done.differences); err != nil {
				return failed(err)
			}
		}
	}
	if version := live.GetResourceVersion(); version == "" || version != stored.GetResourceVersion() {
		a.log.Info("updated resource", "resource", identify(stored))
		a.succeeded("Updated", stored)
	}
	if slices.ContainsFunc(stored.GetManagedFields(), isBeforeFirstApply) {
		if stored, err = a.move(stored); err != nil {
			return failed(err)
		}
	}
	if plan.requested {
		return a.answered(stored, document, plan, failed)
	}
	return a.remember(document, stored, limited)
}

// answered removes the annotation that asked to take fields back.
func (a application[T]) answered(
	stored T, document map[string]any, plan plannedApply, failed func(error) (T, error),
) (T, error) {
	stored, err := a.withoutRequest(stored, plan.taken)
	if err != nil {
		return failed(err)
	}
	return a.remember(document, stored, false)
}

func (a application[T]) inSync(actual T) T {
	if log := a.log.V(1); log.Enabled() {
		log.Info("resource is in sync, no request required", "resource", identify(actual))
	}
	if a.shared {
		return a.manager.comparer.copyToCompare(actual).(T)
	}
	return actual
}

// identified returns the metadata of a request that must only change the live object, and not create one or change
// another one of the same name. A locked request fails if the object has changed.
func identified(metadata any, live client.Object, locked bool) map[string]any {
	fields, _ := metadata.(map[string]any)
	fields = runtime.DeepCopyJSON(fields)
	if uid := live.GetUID(); uid != "" {
		fields["uid"] = string(uid)
	}
	if locked {
		fields["resourceVersion"] = live.GetResourceVersion()
	}
	return fields
}

// withManagedFields returns an object with its managed fields, which a cache may have stripped. It moves the fields of
// former owners to the owner.
func (a application[T]) withManagedFields(actual T) (T, error) {
	live := actual
	if len(live.GetManagedFields()) == 0 && a.config.APIReader != nil && live.GetUID() != "" {
		live = empty.Like(a.manager.Type)
		if err := a.config.APIReader.Get(a.ctx, client.ObjectKeyFromObject(actual), live); err != nil {
			return live, err
		}
	}
	return a.move(live)
}

// plannedApply is what there is to send.
type plannedApply struct {
	document      map[string]any
	differences   []ownership.Difference
	inSync        bool
	force, locked bool
	// requested reports whether an annotation asks to take fields back. taken are those that another client had.
	requested bool
	taken     []string
}

// plan compares the document with the live object.
func (a application[T]) plan(document map[string]any, live T) (plannedApply, error) {
	p := plannedApply{document: document}
	stored, err := content(live)
	if err != nil {
		return p, err
	}
	entry, ours := ownership.EntryOf(live.GetManagedFields(), a.owner)
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		return ours && e.Manager == entry.Manager && e.Operation == entry.Operation && e.Subresource == entry.Subresource
	})
	var refused []FieldConflict
	left, onlySome := false, len(a.manager.ConflictsAt) > 0
	// The cache may not have the latest owners, so a conflict may not be visible here.
	forced := !onlySome && a.manager.Conflicts == ForceOnConflict
	back, requested := fieldsToTakeBack(document, live)
	p.requested = requested
	p.document = ownership.Resolve(document, stored, others, func(path string, owner metav1.ManagedFieldsEntry) bool {
		takesBack := back.has(path)
		if takesBack {
			p.taken = append(p.taken, path)
		}
		if takesBack || isBeforeFirstApply(owner) {
			forced, onlySome = true, true
			return true
		}
		switch a.manager.policyAt(path) {
		case GiveWayOnConflict:
			left = true
			return false
		case ForceOnConflict:
			forced = true
		case FailOnConflict:
			refused = append(refused, FieldConflict{Path: path, Owner: ownership.NameOf(&owner)})
		}
		return true
	})
	if len(refused) > 0 {
		return p, a.conflict(sortedConflicts(refused))
	}
	if len(live.GetManagedFields()) == 0 && a.config.APIReader != nil {
		// The API server attributes all fields to beforeFirstApply. No client owns any.
		forced, onlySome = true, true
	}
	p.force = forced
	// Only the conflicts that were seen are forced, unless all may be.
	p.locked = forced && (left || onlySome)

	comparison := ownership.Compare(p.document, stored, ownership.FieldsOf(entry))
	p.differences = comparison.Differences
	switch sameVersion := entry.APIVersion == document["apiVersion"]; {
	case !ours || !sameVersion || !comparison.OnlyValues():
	case len(comparison.Differences) == 0:
		p.inSync = true
	default:
		if p.inSync, err = a.differsByDefaults(comparison.Merged, live); err != nil {
			return p, err
		}
	}
	if !p.inSync {
		p.inSync = a.manager.memory.settled(live, a.desired, p.differences)
	}
	return p, nil
}

// differsByDefaults reports whether the server stores content as the live object, because it sets defaults and has one
// form for values that can be written in several ones.
func (a application[T]) differsByDefaults(content map[string]any, live client.Object) (bool, error) {
	merged := client.Object(empty.Like(a.manager.Type))
	if u, ok := live.(runtime.Unstructured); ok {
		// The scheme may have a Go type, whose defaults are known.
		if known, err := a.config.Scheme().New(live.GetObjectKind().GroupVersionKind()); err == nil {
			if typed, ok := known.(client.Object); ok {
				merged, live = typed, typed.DeepCopyObject().(client.Object)
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), live); err != nil {
					return false, err
				}
			}
		}
	}
	if u, ok := merged.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, merged); err != nil {
		return false, err
	}
	if difference.Equal(merged, live) {
		return true, nil
	}
	filled, known := a.manager.comparer.withDefaults(a.writer, merged, live)
	return known && difference.Equal(filled, live), nil
}

func paths(differences []ownership.Difference) []string {
	paths := make([]string, len(differences))
	for i, d := range differences {
		paths[i] = d.Path
	}
	return slices.Compact(paths)
}

// remember records what the server has stored for the document. limited reports whether it is applied again after some
// time.
func (a application[T]) remember(document map[string]any, stored T, limited bool) (T, error) {
	plan, err := a.plan(document, stored)
	if err != nil && !errors.As(err, new(*FieldConflictError)) {
		return stored, err
	}
	if limited {
		a.manager.memory.limited(stored, a.desired, plan.differences)
	} else {
		a.manager.memory.verified(stored, a.desired, plan.differences)
	}
	return stored, nil
}
