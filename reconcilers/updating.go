// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
	"trueup.dev/validation"
)

// ObjectManager brings one object from its actual to its desired state. It defines how reconcilers create, update and
// delete the objects that they own.
//
// A manager handles many objects. Use the same manager for an object every time, because it may remember earlier
// writes.
//
// For children and aggregates, the context makes the client of the Config write as the field owner of the controller,
// which says what the controller has made, see [ChildReconciler]. A manager that names another field owner in its
// requests should be used with the same name as [Config.FieldOwner].
type ObjectManager[Type client.Object] interface {
	// SetupWithManager registers the watches that the object manager needs.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Manage creates, updates or deletes an object to reach the desired state. It returns the object in the API server,
	// or nil if the object does not exist or is being deleted.
	//
	// The object exists if actual is not nil and has a creation timestamp. It should exist if desired is not nil.
	// Events, tracked references and finalizers belong to resource, the reconciled resource.
	Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error)
}

// FinalizerHolder is an [ObjectManager] that sets a finalizer on the reconciled resource and removes it when Manage is
// called without an actual and a desired object. A wrapper of an object manager should implement it too: before such a
// call, reconcilers list the objects from the API server, because the cache may not have the latest object yet.
type FinalizerHolder interface {
	// HeldFinalizer returns the finalizer, or "" if the manager sets none.
	HeldFinalizer() string
}

// sharingManager is an object manager that does not change actual objects, so that a cache can share them.
type sharingManager[T client.Object] interface {
	manage(ctx context.Context, resource client.Object, actual, desired T, how handling) (T, error)
}

// handling is how an object manager treats the objects of one call.
type handling struct {
	// shared reports whether the actual object is shared with a cache. A copy of it must be returned.
	shared bool
	// child reports whether the field owner of the root is recorded, which says that the controller made the object.
	child bool
	// unchanged reports whether an object is only deleted if it is still as it was read.
	unchanged bool
}

// manageChild calls an object manager for a child of the resource, or for the resource itself.
func manageChild[T client.Object](
	ctx context.Context, manager ObjectManager[T], resource client.Object, actual, desired T, how handling,
) (T, error) {
	how.child = true
	if config := scopeFrom(ctx).config; config != nil && config.Shard != nil {
		config.assign(actual, desired)
	}
	if manager, ok := manager.(sharingManager[T]); ok {
		return manager.manage(ctx, resource, actual, desired, how)
	}
	return manager.Manage(guard.WithFieldOwner(ctx, fieldOwner(ctx)), resource, actual, desired)
}

// assign labels a desired object for this replica, see [Config.Shard]. A label that the object has stays: only the
// sharder moves objects.
func (c *Config) assign(actual, desired client.Object) {
	if nilcheck.IsNilPointer(desired) || !c.divides(desired) {
		return
	}
	shard := c.Shard.Name()
	if exists(actual) {
		shard = cmp.Or(actual.GetLabels()[c.Shard.Label()], shard)
	}
	desired.SetLabels(withEntry(desired.GetLabels(), c.Shard.Label(), shard))
}

// keepShard restores the label of the replica after MergeBeforeUpdate, which may replace all labels.
func (c *Config) keepShard(merged, actual, desired client.Object) {
	if !c.divides(merged) {
		return
	}
	label := c.Shard.Label()
	if shard := cmp.Or(desired.GetLabels()[label], actual.GetLabels()[label]); shard != merged.GetLabels()[label] {
		merged.SetLabels(withEntry(merged.GetLabels(), label, shard))
	}
}

// exists reports whether obj is a stored object.
func exists(obj client.Object) bool {
	if nilcheck.IsNilPointer(obj) {
		return false
	}
	created := obj.GetCreationTimestamp()
	return !created.IsZero()
}

var (
	_ ObjectManager[client.Object] = (*UpdatingObjectManager[client.Object])(nil)
	_ validation.Validator         = (*UpdatingObjectManager[client.Object])(nil)
)

// UpdatingObjectManager is an [ObjectManager] that updates whole objects. It merges the desired object into a copy of
// the actual object and sends the result to the API server if it differs from the actual object.
//
// Changes by the API server are not treated as drift. A field that the user does not set is in sync if it has its
// default. If it has another value, the manager resets it, regardless of which client set the value. The manager knows
// the defaults of built-in kinds and the values that the server allocates, for example the addresses and ports of a
// Service. It reads the defaults of custom resources from the API server, once for each version of a group, if [Config]
// has Discovery. It remembers changes by admission webhooks and expects them in later reconciles, until one hour after
// the last use. After a restart, an object that a webhook has changed is therefore written once more, and the server
// stores no change. If a webhook keeps the old value of each changed field, the error is a [FieldsKeptError], unless
// the server would store these values for a new object, too, which a dry run shows.
//
// The log line of an update lists the changed fields. If the defaults of a kind are unknown, fields that the user does
// not set and that the actual object has are listed separately, as possiblyDefaults.
//
// Events on the reconciled resource: Normal Created, Updated, Deleted; Warning CreationFailed, UpdateFailed,
// DeleteFailed; Warning FieldsKept and FieldsRewritten if webhooks change what is sent. No event is recorded for an
// error that matches [ErrQuiet].
//
// RBAC, with the group and the plural of the managed kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
type UpdatingObjectManager[Type client.Object] struct {
	// Name identifies the manager in logs. Defaults to `<Type>UpdatingObjectManager`.
	Name string

	// Type is the kind of the managed objects. Defaults to the type parameter; required if the type parameter is an
	// interface or a duck type.
	Type Type

	// Finalizer is added to the reconciled resource before an object is created or updated. It is removed when no
	// object exists and none is desired. It must be unique and stable, see [WithFinalizer]. Optional.
	Finalizer string

	// TrackDesired makes changes of the managed object trigger the reconciled resource. It is needed if the object has
	// no owner reference. Defaults to false.
	TrackDesired bool

	// HarmonizeImmutableFields copies immutable fields from the current to the desired object before they are merged.
	// Optional.
	HarmonizeImmutableFields func(current, desired Type)

	// MergeBeforeUpdate copies the managed fields, often the labels and the spec, from the desired to the current
	// object. Required.
	MergeBeforeUpdate func(current, desired Type)

	// Unmerged are the paths of fields that MergeBeforeUpdate intentionally does not copy, for example spec.replicas. If
	// it leaves out any other field that a desired object sets, a log line names the field, once. Optional.
	Unmerged []string

	// Sanitize returns the loggable part of an object. By default, only the names of changed fields are logged. At
	// verbosity 1, values are also logged, except for Secrets. Optional.
	Sanitize func(child Type) any

	// DangerouslyAllowDuckTypes allows Type to be a duck type. Fields that the duck type does not have are lost when
	// objects are created or updated. Defaults to false.
	DangerouslyAllowDuckTypes bool

	lazyInit  sync.Once
	admission admissionMemory[Type]
	comparer  comparer[Type]
	unmerged  unmerged
}

func (r *UpdatingObjectManager[T]) init() {
	r.lazyInit.Do(func() {
		if nilcheck.IsNilPointer(r.Type) {
			r.Type = newEmpty[T]()
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sUpdatingObjectManager", typeName(r.Type))
		}
	})
}

// SetupWithManager validates the manager. If TrackDesired is set, it watches the managed kind.
func (r *UpdatingObjectManager[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return everyProblem(err)
	}
	if r.TrackDesired {
		if nilcheck.IsNilPointer(r.Type) {
			return fmt.Errorf("UpdatingObjectManager %q must define Type to use TrackDesired", r.Name)
		}
		config := RetrieveConfigOrDie(ctx)
		config.watch(mgr, bldr, watchable(r.Type, config.Scheme()), EnqueueTracked(ctx))
	}
	return nil
}

// Validate checks the required fields. The context must hold a config.
func (r *UpdatingObjectManager[T]) Validate(ctx context.Context) error {
	problems := problems{}
	if r.MergeBeforeUpdate == nil {
		problems.add("UpdatingObjectManager %q must define MergeBeforeUpdate", r.Name)
	}
	if config := RetrieveConfigOrDie(ctx); !nilcheck.IsNilPointer(r.Type) && config.Client != nil &&
		!r.DangerouslyAllowDuckTypes && duck.IsDuck(r.Type, config.Scheme()) {
		problems.add("UpdatingObjectManager %q must enable DangerouslyAllowDuckTypes to use a duck type", r.Name)
	}
	return problems.err()
}

// Setup validates the manager.
//
// Deprecated: use [UpdatingObjectManager.SetupWithManager].
func (r *UpdatingObjectManager[T]) Setup(ctx context.Context) error {
	r.init()
	return everyProblem(r.Validate(ctx))
}

// Manage creates, updates or deletes the object. See [ObjectManager].
func (r *UpdatingObjectManager[T]) Manage(ctx context.Context, resource client.Object, actual, desired T) (T, error) {
	return r.manage(ctx, resource, actual, desired, handling{})
}

// manage implements Manage. If actual is shared with a cache, it returns a copy.
func (r *UpdatingObjectManager[T]) manage(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	r.init()
	var none T

	if nilcheck.IsNilPointer(desired) {
		if !exists(actual) {
			return none, ClearFinalizer(ctx, resource, r.Finalizer)
		}
		if actual.GetDeletionTimestamp() != nil {
			return none, nil
		}
		if err := r.writer(ctx, resource, how).delete(actual); err != nil {
			return none, err
		}
		r.admission.forget(actual.GetUID())
		return none, nil
	}
	if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
		return none, err
	}
	if !exists(actual) {
		return r.create(ctx, resource, desired, how)
	}
	return r.update(ctx, resource, actual, desired, how)
}

func (r *UpdatingObjectManager[T]) create(
	ctx context.Context, resource client.Object, desired T, how handling,
) (T, error) {
	w := r.writer(ctx, resource, how)
	w.log.Info("creating resource", "resource", r.describe(w.log, desired))
	requested := desired.DeepCopyObject().(T)
	if err := w.config.Create(w.owned(), desired); err != nil {
		var none T
		return none, w.failed(err, "unable to create resource", "CreationFailed", "create", desired)
	}
	if r.TrackDesired {
		w.track(desired)
	}
	w.succeeded("Created", desired)
	r.remember(w.log, requested, desired)
	return desired, nil
}

func (r *UpdatingObjectManager[T]) update(
	ctx context.Context, resource client.Object, actual, desired T, how handling,
) (T, error) {
	w := r.writer(ctx, resource, how)
	if r.TrackDesired {
		w.track(actual)
	}

	// The cache may share actual, so callbacks receive a copy.
	current := r.comparer.copyToCompare(actual)
	if r.HarmonizeImmutableFields != nil {
		r.HarmonizeImmutableFields(current, desired)
	}
	wanted := r.admission.expected(actual.GetUID(), desired)
	r.MergeBeforeUpdate(current, wanted)
	inventoryFrom(ctx).label(current, desired)
	w.config.keepShard(current, actual, desired)
	r.unmerged.check(ctx, w.log, resource, current, wanted, r.Unmerged)
	if identical := difference.Identical(current, actual); identical || equality.Semantic.DeepEqual(current, actual) {
		if log := w.log.V(1); log.Enabled() {
			log.Info("resource is in sync, no update required", "resource", identify(actual))
		}
		switch {
		case !how.shared:
			return actual, nil
		case !identical:
			return r.comparer.copyToCompare(actual), nil
		}
		return current, nil
	}

	filled, known := r.comparer.withDefaults(w, current, actual)
	if known && difference.Equal(filled, actual) {
		w.log.V(1).Info(
			"resource is in sync with the defaults of the API server, no update required", "resource", identify(actual),
		)
		// The actual object is what the server stores for the desired object.
		r.remember(w.log, desired.DeepCopyObject().(T), actual)
		if how.shared {
			return r.comparer.copyToCompare(actual), nil
		}
		return actual, nil
	}

	w.log.Info(
		"updating resource", append([]any{"resource", identify(actual)}, r.diff(w.log, actual, filled, known)...)...,
	)
	ownManagedFields(current)
	sent := r.comparer.copyToCompare(current)
	if err := w.config.Update(w.owned(), current); err != nil {
		var none T
		return none, w.failed(err, "unable to update resource", "UpdateFailed", "update", actual)
	}
	kept := false
	if inController(ctx) {
		var err error
		if kept, err = r.judge(ctx, w, actual, sent, current, desired); err != nil {
			return current, w.failed(err, "unable to update resource", "UpdateFailed", "update", actual)
		}
	}
	// The user may return the same object again with changes, so keep a copy.
	r.remember(w.log, desired.DeepCopyObject().(T), current)
	if kept {
		r.admission.limit(current.GetUID())
	}
	if version := actual.GetResourceVersion(); version != "" && version == current.GetResourceVersion() {
		// The server stored no change: the differing fields are set by the server.
		w.log.V(1).Info("resource was in sync, the server stored no change", "resource", identify(current))
		return current, nil
	}
	w.log.Info("updated resource", "resource", identify(current))
	w.succeeded("Updated", current)
	return current, nil
}

// remember records the object that the server stored for the requested object. It keeps requested.
func (r *UpdatingObjectManager[T]) remember(log logr.Logger, requested, stored T) {
	if r.MergeBeforeUpdate == nil {
		return
	}
	if r.HarmonizeImmutableFields != nil {
		// The next desired object will be harmonized with the object that is stored now.
		r.HarmonizeImmutableFields(stored.DeepCopyObject().(T), requested)
	}
	if err := r.admission.learn(requested, stored, r.MergeBeforeUpdate); err != nil {
		log.V(1).Info(
			"unable to determine the changes by the server, the resource may be updated again",
			"resource", identify(stored), "reason", err.Error(),
		)
	}
}

func (r *UpdatingObjectManager[T]) writer(ctx context.Context, resource client.Object, how handling) writer {
	w := newWriter(ctx, r.Name, resource)
	w.how = how
	if r.DangerouslyAllowDuckTypes {
		w.config = w.config.WithDangerousDuckClientOperations()
	}
	return w
}

// HeldFinalizer returns Finalizer. See [FinalizerHolder].
func (r *UpdatingObjectManager[T]) HeldFinalizer() string {
	return r.Finalizer
}

// unmerged finds fields of desired objects that MergeBeforeUpdate does not copy: their changes would have no effect,
// and nothing else would show it. The zero value is ready to use. It is safe for concurrent use.
type unmerged struct {
	compared seldom
	// logged has the paths that were logged.
	logged sync.Map
}

// check logs and reports the fields that were set in the desired object and have another value after the merge. Each
// object is compared once for each generation of the reconciled resource, and each field is logged once.
func (u *unmerged) check(
	ctx context.Context, log logr.Logger, resource, merged, desired client.Object, ignored []string,
) {
	if !log.Enabled() && !observe.IsObserved(ctx) || !u.compared.isNew(merged.GetUID(), resource.GetGeneration()) {
		return
	}
	fields := []string{}
	for _, d := range difference.Between(desired, merged) {
		path := d.Field()
		if before, _ := d.Values(); before == nil || !isAuthors(path) || isBelowAny(path, ignored) {
			continue
		}
		if _, known := u.logged.LoadOrStore(path, true); !known || merged.GetUID() == "" {
			fields = append(fields, path)
		}
	}
	if len(fields) > 0 {
		observe.Of(nil).Report(ctx, &observe.ProblemFound{Path: step.Names(ctx), Text: fmt.Sprintf(
			"MergeBeforeUpdate does not copy %s to the existing %s, so changes of it have no effect; "+
				"copy it, or list it in Unmerged", strings.Join(fields, ", "), identify(merged))})
		log.Info("MergeBeforeUpdate does not copy fields of the desired object, so they are not updated. "+
			"List them in Unmerged if that is intended", "resource", identify(merged), "fields", fields)
	}
}

// isAuthors reports whether the author of a desired object may set a field: not the type, the status, nor metadata
// other than labels and annotations.
func isAuthors(path string) bool {
	if isBelow(path, "metadata") {
		return isBelow(path, "metadata.labels") || isBelow(path, "metadata.annotations")
	}
	return !isBelowAny(path, []string{"kind", "apiVersion", "status"})
}

func isBelowAny(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(other string) bool { return isBelow(path, strings.TrimPrefix(other, ".")) })
}

// seldom is a set of objects of fixed size that may contain some that were not added. The zero value is ready to use.
type seldom struct {
	bits [1024]atomic.Uint64
}

var seldomSeed = maphash.MakeSeed()

// isNew adds an object in a generation of its parent, and reports whether it was missing. Objects without a UID, which
// tests have, are always new.
func (s *seldom) isNew(uid types.UID, generation int64) bool {
	if uid == "" {
		return true
	}
	at := (maphash.String(seldomSeed, string(uid)) ^ uint64(generation)*0x9e3779b97f4a7c15) % (1024 * 64)
	bit := uint64(1) << (at % 64)
	word := &s.bits[at/64]
	return word.Load()&bit == 0 && word.Or(bit)&bit == 0
}

// ImmutableFields returns the paths of the fields that made the API server refuse an update, for example
// "spec.selector", sorted. It returns nil unless every cause of the error is that a field cannot change: the update
// would still be refused for another cause. It knows the texts of built-in kinds, and validation rules of custom
// resources whose text ends with "immutable" or that are self == oldSelf without a text.
func ImmutableFields(err error) []string {
	status := apierrs.APIStatus(nil)
	if !apierrs.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !saysImmutable(cause) {
			return nil
		}
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// saysImmutable reports whether a field cannot change. The text of an invalid value begins with the value, which can
// contain any text, so only its end is compared.
func saysImmutable(cause metav1.StatusCause) bool {
	switch cause.Type {
	case metav1.CauseTypeFieldValueInvalid:
		return slices.ContainsFunc([]string{
			"immutable", ": may not change once set", ": failed rule: self == oldSelf", ": failed rule: oldSelf == self",
		}, func(end string) bool { return strings.HasSuffix(cause.Message, end) })
	case metav1.CauseTypeForbidden:
		detail, ok := strings.CutPrefix(cause.Message, "Forbidden: ")
		if !ok {
			return false
		}
		detail, _, _ = strings.Cut(detail, "\n") // a difference follows
		return strings.Contains(detail, " is immutable") || strings.HasPrefix(detail, "may not be changed") ||
			strings.HasPrefix(detail, "updates to ") && strings.Contains(detail, " forbidden") ||
			strings.HasPrefix(detail, "pod updates may not change ")
	}
	return false
}
