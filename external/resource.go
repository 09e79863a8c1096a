// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

var (
	_ reconcilers.SubReconciler[client.Object] = (*Resource[client.Object, any])(nil)
	_ validation.Validator                     = (*Resource[client.Object, any])(nil)
	_ graph.Describer                          = (*Resource[client.Object, any])(nil)
)

// DeletionPolicy is what happens to an external resource when its Kubernetes resource is deleted.
type DeletionPolicy string

const (
	// Delete deletes the external resource, and keeps the Kubernetes resource until it no longer exists.
	Delete DeletionPolicy = "Delete"
	// Retain keeps the external resource. It is found again by a Kubernetes resource with the same token.
	Retain DeletionPolicy = "Retain"
)

// Resource is a subreconciler for one resource outside of Kubernetes, for example a bucket of a cloud: it creates,
// observes, updates and deletes it.
//
// Before the external resource is created, a finalizer on the Kubernetes resource records that it may exist, and a
// token is known by which it can be found. After the creation, its ID is recorded in the status, and it is observed
// before it is announced. If the response of the creation, or the status, is lost, the next reconcile finds the
// external resource by the token, and creates no second one. When the Kubernetes resource is deleted, the finalizer is
// removed after the external resource no longer exists.
//
// If you choose the ID, as for a user or a DNS record, nothing is recorded: leave out ID, SetID and Find, and the token
// is the ID.
//
// What one call does not find may still exist, because external systems are eventually consistent: it counts as absent
// after VisibilityDelay. Until then nothing is created in its place, and the finalizer stays. If Find may not see what
// an earlier Create has made, or if a request may take effect after its client has given up, Create must also be
// idempotent for a token: most clouds accept such a client token. Such a cloud remembers the token of an external
// resource that was deleted, and returns it again. If what Create has returned is never observed, the token of the next
// attempt has a suffix: "-1", "-2" and so on. The number is recorded in an annotation of the Kubernetes resource, the
// finalizer with the suffix "-attempt".
//
// A [reconcilers.Step] that is not wanted deletes its external resource. An [reconcilers.IfThen] would leak it.
//
// In a plan, see package [trueup.dev/plan], Create, Update and Delete are announced and not called, and steps that
// follow a creation do not run.
//
// Events on the Kubernetes resource: Normal ExternalCreated, ExternalFound, ExternalImported, ExternalUpdated,
// ExternalDeleted and ExternalRetained, Warning ExternalMissing, and the events of the finalizer. Errors of the
// functions are returned. The permissions are the permissions of [reconcilers.WithFinalizer].
type Resource[Type client.Object, External any] struct {
	// Name identifies the reconciler in logs and the external resource in events, for example `Bucket`. Required.
	Name string

	// Finalizer is a unique qualified name such as `sites.example.com/bucket`, which must never change. Required.
	Finalizer string

	// ID returns the ID of the external resource from the status, and SetID records it there. "" is no ID. ID, SetID and
	// Find are required if the external system chooses the ID. Without all three, the token is the ID.
	ID    func(resource Type) string
	SetID func(resource Type, id string)

	// Token returns what identifies the external resource before it has an ID, for example the value of a tag. It must
	// be the same in each reconcile, and must not depend on what users can change. Defaults to the UID of the Kubernetes
	// resource, which is another one after the resource was deleted and created again, or restored from a backup:
	// [NameToken] is the same then.
	Token func(resource Type) string

	// Find returns the external resource with a token, and its ID. Found is false if it does not exist. It is called
	// while the status has no ID.
	Find func(ctx context.Context, resource Type, token string) (id string, external External, found bool, err error)

	// Import returns the ID of an existing external resource to take over, for example from a field of the spec, or "".
	// It is called while the status has no ID, instead of Find and Create. If the external resource does not exist, that
	// is an error. An imported external resource is updated and deleted like others: users can then delete whatever Import
	// can name. It requires ID, SetID and Find. Optional.
	Import func(resource Type) (id string)

	// Observe returns the external resource with an ID. Found is false if it does not exist: then, after VisibilityDelay,
	// it is created again, or its deletion is complete. Required.
	Observe func(ctx context.Context, resource Type, id string) (external External, found bool, err error)

	// Create creates the external resource with a token, and returns it with its ID, which is ignored if the token is the
	// ID. Required.
	Create func(ctx context.Context, resource Type, token string) (id string, external External, err error)

	// InSync reports whether the external resource is as desired. Required with Update.
	InSync func(ctx context.Context, resource Type, external External) bool

	// Update changes an external resource for which InSync returns false, and returns it. Optional: without it, an
	// external resource is never changed.
	Update func(ctx context.Context, resource Type, id string, external External) (External, error)

	// Delete deletes the external resource with an ID. It may return before the deletion is complete, and is called
	// again until Observe no longer finds it. Required.
	Delete func(ctx context.Context, resource Type, id string) error

	// Ready reports whether an external resource that exists can be used. Until it can, it is observed after each
	// PollInterval, and later steps do not run. By default it can be used when it exists.
	Ready func(ctx context.Context, resource Type, external External) bool

	// DeletionPolicy returns what happens to the external resource. Defaults to a function that returns [Delete].
	DeletionPolicy func(resource Type) DeletionPolicy

	// Reflect writes the state of the external resource into the status. It is called when the external resource
	// exists. Optional.
	Reflect func(ctx context.Context, resource Type, external External)

	// DriftInterval is the interval at which the external resource is observed if nothing else happens, see
	// [reconcilers.Periodic]. Between two observations, no function is called unless the generation of the Kubernetes
	// resource changes. By default, each reconcile observes it.
	DriftInterval time.Duration

	// PollInterval is the time between two observations of an external resource that is being deleted, or is not ready.
	// Defaults to 10 seconds.
	PollInterval time.Duration

	// VisibilityDelay is how long an external resource may exist without being found by Find or Observe, including the
	// time in which a request takes effect after its client has given up. Defaults to 30 seconds. A negative delay is
	// none: what is not found once does not exist.
	VisibilityDelay time.Duration

	lazyInit sync.Once
	// named reports whether the token is the ID.
	named  bool
	steps  reconcilers.WithFinalizer[Type]
	memory memory
}

func (r *Resource[T, E]) init() {
	r.lazyInit.Do(func() {
		if r.Token == nil {
			r.Token = func(resource T) string { return string(resource.GetUID()) }
		}
		if r.ID == nil && r.SetID == nil && r.Find == nil {
			r.named, r.ID = true, r.Token
		}
		if r.DeletionPolicy == nil {
			r.DeletionPolicy = func(T) DeletionPolicy { return Delete }
		}
		if r.PollInterval == 0 {
			r.PollInterval = 10 * time.Second
		}
		if r.VisibilityDelay == 0 {
			r.VisibilityDelay = 30 * time.Second
		}
		var inner reconcilers.SubReconciler[T] = &reconcilers.SyncReconciler[T]{
			Name: "External", SyncWithResult: r.sync, FinalizeWithResult: r.finalize,
		}
		if r.DriftInterval > 0 {
			inner = &reconcilers.Periodic[T]{Name: "Drift", Interval: r.DriftInterval, Reconciler: inner}
		}
		r.steps = reconcilers.WithFinalizer[T]{Name: r.Name, Finalizer: r.Finalizer, Reconciler: inner}
	})
}

// SetupWithManager validates the reconciler.
func (r *Resource[T, E]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	r.init()
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return r.steps.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks the fields, and returns all problems.
func (r *Resource[T, E]) Validate(ctx context.Context) error {
	r.init()
	var problems []error
	require := func(field string, missing bool) {
		if missing {
			problems = append(problems, fmt.Errorf("external.Resource %q must define %s", r.Name, field))
		}
	}
	require("Name", r.Name == "")
	require("Finalizer", r.Finalizer == "")
	const all = ": all of ID, SetID and Find, or none"
	require("ID"+all, !r.named && r.ID == nil)
	require("SetID"+all, !r.named && r.SetID == nil)
	require("Find"+all, !r.named && r.Find == nil)
	require("ID, SetID and Find, because it defines Import", r.named && r.Import != nil)
	require("Observe", r.Observe == nil)
	require("Create", r.Create == nil)
	require("Delete", r.Delete == nil)
	require("InSync, because it defines Update", r.Update != nil && r.InSync == nil)
	require("Update, because it defines InSync", r.Update == nil && r.InSync != nil)
	if errs := utilvalidation.IsQualifiedName(r.attemptKey()); r.Finalizer != "" && !r.named && len(errs) > 0 {
		problems = append(problems, fmt.Errorf(
			"external.Resource %q must define a Finalizer to which %q can be added as the name of an annotation: %s",
			r.Name, attemptSuffix, strings.Join(errs, ", "),
		))
	}
	if r.DriftInterval < 0 || r.PollInterval < 0 {
		problems = append(problems, fmt.Errorf(
			"external.Resource %q must define intervals that are not negative, got %v and %v",
			r.Name, r.DriftInterval, r.PollInterval,
		))
	}
	if len(problems) == 0 {
		return r.steps.Validate(ctx)
	}
	return errors.Join(problems...)
}

// DescribeTo describes the reconciler. See [graph.Describer].
func (r *Resource[T, E]) DescribeTo(n *graph.Node) {
	r.init()
	r.steps.DescribeTo(n)
}

// Reconcile creates, observes, updates or deletes the external resource.
func (r *Resource[T, E]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	r.init()
	return r.steps.Reconcile(ctx, resource)
}

func (r *Resource[T, E]) sync(ctx context.Context, resource T) (reconcilers.Result, error) {
	external, found, again, err := r.find(ctx, resource)
	if err == nil && again == 0 && !found {
		external, again, err = r.create(ctx, resource)
	}
	if err != nil || again > 0 {
		return halt(again, err)
	}
	if id := r.ID(resource); r.Update != nil && !r.InSync(ctx, resource, external) &&
		!Announce(ctx, "update the %s %s of %s", r.Name, id, name(resource)) {
		if external, err = r.Update(ctx, resource, id, external); err != nil {
			return reconcilers.Result{}, fmt.Errorf("update %s %s: %w", r.Name, id, err)
		}
		event(ctx, resource, corev1.EventTypeNormal, "ExternalUpdated", "Updated %s %s", r.Name, id)
	}
	if r.Reflect != nil {
		r.Reflect(ctx, resource, external)
	}
	if r.Ready != nil && !r.Ready(ctx, resource, external) {
		return halt(r.PollInterval, nil)
	}
	return reconcilers.Result{}, nil
}

// halt returns the error or, without one, what ends the reconcile and repeats it after a time.
func halt(after time.Duration, err error) (reconcilers.Result, error) {
	if err != nil {
		return reconcilers.Result{}, err
	}
	return reconcilers.Result{RequeueAfter: after}, reconcilers.ErrHaltSubReconcilers
}

// create creates the external resource, and returns what is observed afterwards, or a time after which to observe it.
func (r *Resource[T, E]) create(ctx context.Context, resource T) (external E, again time.Duration, _ error) {
	if Announce(ctx, "create the %s of %s", r.Name, name(resource)) {
		return external, 0, reconcilers.ErrHaltSubReconcilers
	}
	r.memory.forget(resource) // what was absent may exist from now on
	id, external, err := r.Create(ctx, resource, r.token(resource))
	if err != nil {
		return external, 0, fmt.Errorf("create %s: %w", r.Name, err)
	}
	if r.named {
		id = r.ID(resource)
		event(ctx, resource, corev1.EventTypeNormal, "ExternalCreated", "Created %s %s", r.Name, id)
		return external, 0, nil
	}
	r.SetID(resource, id)
	if id == "" { // it will be found by its token
		return external, r.PollInterval, nil
	}
	r.memory.change(resource, func(m *remembered) { m.created, m.attempt = id, r.attempt(resource) })
	external, _, again, err = r.find(ctx, resource) // an idempotent response may be about one that no longer exists
	return external, again, err
}

// find returns the external resource by its ID or by its token, and sets the ID. If it is too early to say that it does
// not exist, find returns the time after which to try again.
func (r *Resource[T, E]) find(ctx context.Context, resource T) (external E, found bool, again time.Duration, _ error) {
	removing := reconcilers.MustRemove(ctx, resource)
	if id := r.ID(resource); id != "" {
		external, found, err := r.observe(ctx, resource, id)
		if err != nil || found || r.named || removing {
			return external, found, 0, err
		}
		if again := r.visibleIn(ctx, resource, id); again > 0 {
			return external, false, again, nil
		}
		if known := r.memory.of(resource); known.created == id {
			// the first response again, to the token of one that was deleted since
			again, err := time.Second, r.startAttempt(ctx, resource, known.attempt+1)
			return external, false, again, err
		}
		event(ctx, resource, corev1.EventTypeWarning, "ExternalMissing", "%s %s no longer exists", r.Name, id)
		r.SetID(resource, "")
	}
	if r.Import != nil && !removing {
		if id := r.Import(resource); id != "" {
			external, found, err := r.observe(ctx, resource, id)
			if err == nil && !found {
				err = fmt.Errorf("import %s %s: it does not exist", r.Name, id)
			}
			if err == nil {
				r.SetID(resource, id)
				event(ctx, resource, corev1.EventTypeNormal, "ExternalImported", "Imported %s %s", r.Name, id)
			}
			return external, found, 0, err
		}
	}
	id, external, found, err := r.Find(ctx, resource, r.token(resource))
	if err != nil {
		return external, false, 0, fmt.Errorf("find %s: %w", r.Name, err)
	}
	if found {
		r.SetID(resource, id)
		r.memory.change(resource, func(m *remembered) { m.created, m.absent = "", "" })
		event(ctx, resource, corev1.EventTypeNormal, "ExternalFound", "Found %s %s", r.Name, id)
	}
	return external, found, 0, nil
}

// observe is Observe, and announces the creation of an external resource when it is observed for the first time.
func (r *Resource[T, E]) observe(ctx context.Context, resource T, id string) (external E, found bool, _ error) {
	external, found, err := r.Observe(ctx, resource, id)
	if err != nil {
		return external, false, fmt.Errorf("observe %s %s: %w", r.Name, id, err)
	}
	if found {
		if r.memory.of(resource).created == id {
			event(ctx, resource, corev1.EventTypeNormal, "ExternalCreated", "Created %s %s", r.Name, id)
		}
		r.memory.change(resource, func(m *remembered) { m.created, m.absent = "", "" })
	}
	return external, found, nil
}

// visibleIn returns the time after which what was not found does not exist, or 0.
func (r *Resource[T, E]) visibleIn(ctx context.Context, resource T, what string) (after time.Duration) {
	if InPlan(ctx) {
		return 0
	}
	now := rtime.RetrieveNow(ctx)
	r.memory.change(resource, func(m *remembered) {
		if m.absent != what {
			m.absent, m.since = what, now
		}
		after = max(0, m.since.Add(r.VisibilityDelay).Sub(now))
		if m.created == what { // it is new
			after = min(after, r.PollInterval)
		}
	})
	return after
}

func (r *Resource[T, E]) finalize(ctx context.Context, resource T) (reconcilers.Result, error) {
	if !slices.Contains(resource.GetFinalizers(), r.Finalizer) {
		return reconcilers.Result{}, nil // nothing was created, or its deletion is complete
	}
	if r.DeletionPolicy(resource) == Retain {
		event(ctx, resource, corev1.EventTypeNormal, "ExternalRetained", "%s",
			strings.TrimSpace("Retained "+r.Name+" "+r.ID(resource)))
		r.memory.forget(resource)
		return reconcilers.Result{}, nil
	}
	_, found, _, err := r.find(ctx, resource)
	if err != nil {
		return reconcilers.Result{}, err
	}
	id := r.ID(resource)
	if !found {
		if id != "" && r.memory.of(resource).deleted == id {
			r.deleted(ctx, resource)
			return reconcilers.Result{}, nil
		}
		if again := r.visibleIn(ctx, resource, cmp.Or(id, r.token(resource))); again > 0 {
			return halt(again, nil)
		}
		r.finalized(resource)
		return reconcilers.Result{}, nil
	}
	if Announce(ctx, "delete the %s %s of %s", r.Name, id, name(resource)) {
		return reconcilers.Result{}, nil
	}
	if err := r.Delete(ctx, resource, id); err != nil {
		return reconcilers.Result{}, fmt.Errorf("delete %s %s: %w", r.Name, id, err)
	}
	r.memory.change(resource, func(m *remembered) { m.deleted = id })
	switch _, found, err := r.Observe(ctx, resource, id); {
	case err != nil:
		return reconcilers.Result{}, fmt.Errorf("observe %s %s: %w", r.Name, id, err)
	case found: // its deletion takes time
		return halt(r.PollInterval, nil)
	}
	r.deleted(ctx, resource)
	return reconcilers.Result{}, nil
}

func (r *Resource[T, E]) deleted(ctx context.Context, resource T) {
	event(ctx, resource, corev1.EventTypeNormal, "ExternalDeleted", "Deleted %s %s", r.Name, r.ID(resource))
	r.finalized(resource)
}

// finalized is called when the external resource no longer exists. The Kubernetes resource may need another one later.
func (r *Resource[T, E]) finalized(resource T) {
	if r.memory.forget(resource); !r.named && resource.GetDeletionTimestamp() == nil {
		r.SetID(resource, "")
	}
}

func event(ctx context.Context, resource client.Object, kind, reason, format string, args ...any) {
	reconcilers.RetrieveConfigOrDie(ctx).Recorder.Eventf(resource, kind, reason, format, args...)
}

func name(resource client.Object) string {
	if resource.GetNamespace() == "" {
		return resource.GetName()
	}
	return resource.GetNamespace() + "/" + resource.GetName()
}
