// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/reconcilers"
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

// Resource is a sub reconciler for one resource outside of Kubernetes, for example a bucket of a cloud: it creates,
// observes, updates and deletes it.
//
// Before the external resource is created, a finalizer on the Kubernetes resource records that it may exist, and a
// token is known by which it can be found. After the creation, its ID is recorded in the status. If the response of the
// creation, or the status, is lost, the next reconcile finds the external resource by the token, and creates no second
// one. When the Kubernetes resource is deleted, the finalizer is removed after the external resource no longer exists.
//
// If you choose the ID, as for a user or a DNS record, nothing is recorded: leave out ID, SetID and Find, and the token
// is the ID.
//
// A [reconcilers.Step] that is not wanted deletes its external resource. An [reconcilers.IfThen] would leak it.
//
// This holds if Find returns what an earlier Create has made. If the external system is eventually consistent, or if a
// request may take effect after its client has given up, Create must be idempotent for a token: most clouds accept such
// a client token.
//
// In a plan, see package [trueup.dev/plan], Create, Update and Delete are announced and not called, and steps that
// follow a creation do not run.
//
// Events on the Kubernetes resource: Normal ExternalCreated, ExternalFound, ExternalUpdated, ExternalDeleted and
// ExternalRetained, Warning ExternalMissing, and those of the finalizer. Errors of the functions are returned. The
// permissions are those of [reconcilers.WithFinalizer].
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
	// resource.
	Token func(resource Type) string

	// Find returns the external resource with a token, and its ID. Found is false if it does not exist. It is called
	// while the status has no ID.
	Find func(ctx context.Context, resource Type, token string) (id string, external External, found bool, err error)

	// Observe returns the external resource with an ID. Found is false if it does not exist: then it is created again,
	// or its deletion is complete. Required.
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

	// DeletionPolicy returns what happens to the external resource. Defaults to a function that returns [Delete].
	DeletionPolicy func(resource Type) DeletionPolicy

	// Reflect writes the state of the external resource into the status. It is called when the external resource
	// exists. Optional.
	Reflect func(ctx context.Context, resource Type, external External)

	// DriftInterval is the interval at which the external resource is observed if nothing else happens, see
	// [reconcilers.Periodic]. Between two observations, no function is called unless the generation of the Kubernetes
	// resource changes. By default, each reconcile observes it.
	DriftInterval time.Duration

	// PollInterval is the time between two observations of an external resource that is being deleted. Defaults to 10
	// seconds.
	PollInterval time.Duration

	lazyInit sync.Once
	// named reports whether the token is the ID.
	named bool
	steps reconcilers.WithFinalizer[Type]
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
		var inner reconcilers.SubReconciler[T] = &reconcilers.SyncReconciler[T]{
			Name: "External", Sync: r.sync, FinalizeWithResult: r.finalize,
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
	require("Observe", r.Observe == nil)
	require("Create", r.Create == nil)
	require("Delete", r.Delete == nil)
	require("InSync, because it defines Update", r.Update != nil && r.InSync == nil)
	require("Update, because it defines InSync", r.Update == nil && r.InSync != nil)
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

func (r *Resource[T, E]) sync(ctx context.Context, resource T) error {
	external, found, err := r.find(ctx, resource)
	if err != nil {
		return err
	}
	id := r.ID(resource)
	switch {
	case !found:
		if Announce(ctx, "create the %s of %s", r.Name, name(resource)) {
			return reconcilers.ErrHaltSubReconcilers
		}
		created, external, err := r.Create(ctx, resource, r.Token(resource))
		if err != nil {
			return fmt.Errorf("create %s: %w", r.Name, err)
		}
		if !r.named {
			id = created
			r.SetID(resource, id)
		}
		event(ctx, resource, corev1.EventTypeNormal, "ExternalCreated", "Created %s %s", r.Name, id)
		r.reflect(ctx, resource, external)
		return nil
	case r.Update != nil && !r.InSync(ctx, resource, external):
		if Announce(ctx, "update the %s %s of %s", r.Name, id, name(resource)) {
			break
		}
		if external, err = r.Update(ctx, resource, id, external); err != nil {
			return fmt.Errorf("update %s %s: %w", r.Name, id, err)
		}
		event(ctx, resource, corev1.EventTypeNormal, "ExternalUpdated", "Updated %s %s", r.Name, id)
	}
	r.reflect(ctx, resource, external)
	return nil
}

func (r *Resource[T, E]) reflect(ctx context.Context, resource T, external E) {
	if r.Reflect != nil {
		r.Reflect(ctx, resource, external)
	}
}

// find returns the external resource by its ID or by its token, and sets the ID.
func (r *Resource[T, E]) find(ctx context.Context, resource T) (external E, found bool, err error) {
	id := r.ID(resource)
	if id != "" {
		external, found, err := r.Observe(ctx, resource, id)
		if err != nil {
			return external, false, fmt.Errorf("observe %s %s: %w", r.Name, id, err)
		}
		if found || r.named || reconcilers.MustRemove(ctx, resource) {
			return external, found, nil
		}
		event(ctx, resource, corev1.EventTypeWarning, "ExternalMissing", "%s %s no longer exists", r.Name, id)
		r.SetID(resource, "")
	}
	known, external, found, err := r.Find(ctx, resource, r.Token(resource))
	if err != nil {
		return external, false, fmt.Errorf("find %s: %w", r.Name, err)
	}
	if found {
		r.SetID(resource, known)
		event(ctx, resource, corev1.EventTypeNormal, "ExternalFound", "Found %s %s", r.Name, known)
	}
	return external, found, nil
}

func (r *Resource[T, E]) finalize(ctx context.Context, resource T) (reconcilers.Result, error) {
	if !slices.Contains(resource.GetFinalizers(), r.Finalizer) {
		return reconcilers.Result{}, nil // nothing was created, or its deletion is complete
	}
	if r.DeletionPolicy(resource) == Retain {
		event(ctx, resource, corev1.EventTypeNormal, "ExternalRetained", "%s",
			strings.TrimSpace("Retained "+r.Name+" "+r.ID(resource)))
		return reconcilers.Result{}, nil
	}
	if _, found, err := r.find(ctx, resource); err != nil || !found {
		return reconcilers.Result{}, err
	}
	id := r.ID(resource)
	if Announce(ctx, "delete the %s %s of %s", r.Name, id, name(resource)) {
		return reconcilers.Result{}, nil
	}
	if err := r.Delete(ctx, resource, id); err != nil {
		return reconcilers.Result{}, fmt.Errorf("delete %s %s: %w", r.Name, id, err)
	}
	switch _, found, err := r.Observe(ctx, resource, id); {
	case err != nil:
		return reconcilers.Result{}, fmt.Errorf("observe %s %s: %w", r.Name, id, err)
	case found: // its deletion takes time
		return reconcilers.Result{RequeueAfter: r.PollInterval}, reconcilers.ErrHaltSubReconcilers
	}
	event(ctx, resource, corev1.EventTypeNormal, "ExternalDeleted", "Deleted %s %s", r.Name, id)
	return reconcilers.Result{}, nil
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
