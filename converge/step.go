// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/sim"
	"trueup.dev/converge/internal/world"
)

// Step is an action of the users, or a wait. Users see what the API server has, and their requests do not fail.
type Step struct {
	plain sim.Step
	// steps are the steps of a step that consists of several, which has nothing else.
	steps []Step
	// applies is the object of an Apply.
	applies client.Object
}

// userSteps returns steps as a run performs them.
func userSteps(steps []Step) []sim.Step {
	plain := make([]sim.Step, len(steps))
	for i, step := range steps {
		plain[i] = step.plain
	}
	return plain
}

// Steps returns its arguments.
func Steps(steps ...Step) []Step { return steps }

// Settle waits until the controller is idle: no more faults are injected, caches are up to date, and no reconcile is
// due that would change anything. Then the oracles check the state.
//
// Requests that poll are awaited as long as they change something, and another minute. Requests that are requeued after
// half an hour or more are awaited once, if that is not longer than half of [Scenario.Patience]: the work after it may
// be the same each time. All other work that only depends on time requires a [Sleep] before.
func Settle() Step { return Step{plain: sim.Step{Name: "settle", Settle: true}} }

// Sleep lets virtual time pass, exactly d. The controller works meanwhile. Reconciles that are running at the end go on
// in the next step, and a request that is due at the end starts then.
//
// How many reconciles a Sleep may take is not limited, but their rate is. A request that is reconciled 50 times within
// a second without any change is a hot loop. So is one whose reconciles change something or fail more than
// [Scenario.MaxReconciles] times within a minute, or twice as often in runs with faults. Requests may poll: a request
// that was reconciled 50 times without any change waits for at least 0.5 % of the time since the last change, and for
// at most ten minutes, so that hours of polling take milliseconds. At the end of the Sleep it is due again.
func Sleep(d time.Duration) Step { return Step{plain: sim.Step{Name: "wait " + d.String(), Sleep: d}} }

// SleepThen lets time pass, performs steps at once, and waits until the controller is idle: it is a [Sleep], the steps,
// and a [Settle]. It is for work that depends on time and never ends, such as the work of a cron job. Such a controller
// becomes idle only after a step that suspends the work:
//
//	converge.SleepThen(3*time.Minute+30*time.Second, converge.Change(cronJob, func(c *v1.CronJob) {
//		c.Spec.Suspend = true
//	}))
//
// The time should end between two times at which work is due: faults delay work by some seconds.
func SleepThen(d time.Duration, steps ...Step) Step {
	return Step{steps: slices.Concat([]Step{Sleep(d)}, steps, []Step{Settle()})}
}

// flat returns steps, with the parts of a step that consists of several instead of that step.
func flat(steps []Step) []Step {
	var all []Step
	for _, step := range steps {
		if len(step.steps) == 0 {
			all = append(all, step)
		} else {
			all = append(all, flat(step.steps)...)
		}
	}
	return all
}

// Do calls a function. Its client reads what the API server has.
func Do(name string, do func(ctx context.Context, c client.Client) error) Step {
	return Step{plain: sim.Step{Name: name, Do: do}}
}

// DeleteInCloud deletes all values of the [Cloud] whose keys have a prefix, as another client of the external system
// does. No event informs the controller.
func DeleteInCloud(prefix string) Step {
	return Step{plain: sim.Step{
		Name:  "delete in the cloud " + prefix,
		Cloud: func(s *world.Cloud) { s.DeleteAll(prefix) },
		Do: func(context.Context, client.Client) error {
			return errors.New("a Cloud exists only in runs of converge")
		},
	}}
}

// Perform performs the step in a cluster, for example in a sandbox, so that the same steps serve a run with a real API
// server. It calls wait for each [Settle], with 0, and for each [Sleep], with its time. It returns the first error.
func (s Step) Perform(
	ctx context.Context, c client.Client, wait func(ctx context.Context, atLeast time.Duration) error,
) error {
	for _, step := range flat([]Step{s}) {
		var err error
		if step.plain.Do != nil {
			err = step.plain.Do(ctx, c)
		} else {
			err = wait(ctx, step.plain.Sleep)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.plain.Name, err)
		}
	}
	return nil
}

// Apply creates an object, or replaces the content of the existing one except metadata and status. Labels and
// annotations are added. It does not use server-side apply.
func Apply(obj client.Object) Step {
	step := Do("apply "+phrase.Describe(obj), func(ctx context.Context, c client.Client) error {
		err := replace(ctx, c, obj, "")
		if apierrs.IsNotFound(err) {
			return c.Create(ctx, obj.DeepCopyObject().(client.Object))
		}
		return err
	})
	step.applies = obj
	return step
}

// Update is [Apply] for an object that must exist.
func Update(obj client.Object) Step {
	return Do("update "+phrase.Describe(obj), func(ctx context.Context, c client.Client) error {
		return replace(ctx, c, obj, "")
	})
}

// Change changes an object, which must exist.
func Change[T client.Object](obj T, change func(T)) Step {
	return Do("change "+phrase.Describe(obj), func(ctx context.Context, c client.Client) error {
		current := obj.DeepCopyObject().(T)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
			return err
		}
		change(current)
		return c.Update(ctx, current)
	})
}

// Delete deletes an object, and does not wait until it no longer exists.
func Delete(obj client.Object) Step {
	return Do("delete "+phrase.Describe(obj), func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, obj.DeepCopyObject().(client.Object)))
	})
}

// Orphan deletes an object, which must exist, and leaves its dependents, as `kubectl delete --cascade=orphan` does: the
// object has the finalizer orphan until the garbage collector has removed the owner references of its dependents.
func Orphan(obj client.Object) Step {
	return Do("orphan the dependents of "+phrase.Describe(obj), func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, obj.DeepCopyObject().(client.Object),
			client.PropagationPolicy(metav1.DeletePropagationOrphan))
	})
}

// CreateOwned creates an object as a client that is not a controller of the scenario does, with a field manager of its
// own. The owner, which must exist, controls the object, unless it is nil. Set [Scenario.ManagedFields] for reconcilers
// that distinguish objects by their managers.
func CreateOwned(owner, obj client.Object, manager string) Step {
	name := fmt.Sprintf("%s creates %s", manager, phrase.Describe(obj))
	return Do(name, func(ctx context.Context, c client.Client) error {
		created := obj.DeepCopyObject().(client.Object)
		if owner != nil {
			current := owner.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(owner), current); err != nil {
				return err
			}
			if err := controllerutil.SetControllerReference(current, created, c.Scheme()); err != nil {
				return err
			}
		}
		return c.Create(ctx, created, client.FieldOwner(manager))
	})
}

// ChangeOwned changes all objects of a kind that an object controls, for example their labels. Their names need not be
// known. There must be at least one.
func ChangeOwned[T client.Object](owner client.Object, kind T, what string, change func(T)) Step {
	name := fmt.Sprintf("%s of each %s of %s", what, phrase.KindOf(kind), phrase.Describe(owner))
	return Do(name, func(ctx context.Context, c client.Client) error {
		current := owner.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(owner), current); err != nil {
			return err
		}
		gvk, err := c.GroupVersionKindFor(kind)
		if err != nil {
			return err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(owner.GetNamespace())); err != nil {
			return err
		}
		changed := 0
		for i := range list.Items {
			if !metav1.IsControlledBy(&list.Items[i], current) {
				continue
			}
			obj := kind.DeepCopyObject().(T)
			if err := c.Get(ctx, client.ObjectKeyFromObject(&list.Items[i]), obj); err != nil {
				return err
			}
			change(obj)
			if err := c.Update(ctx, obj); err != nil {
				return err
			}
			changed++
		}
		if changed == 0 {
			return fmt.Errorf("%s controls no %s", phrase.Describe(owner), gvk.Kind)
		}
		return nil
	})
}

// Lifecycle creates an object, changes it, and deletes it, with a [Settle] after each step.
func Lifecycle[T client.Object](obj T, changes ...func(T)) []Step {
	steps := []Step{Apply(obj), Settle()}
	for _, change := range changes {
		steps = append(steps, Change(obj, change), Settle())
	}
	return append(steps, Delete(obj), Settle())
}

// replace replaces the content of an object. It adds labels and annotations, and removes one with a key, if that is not
// empty, unless the object has it.
func replace(ctx context.Context, c client.Client, obj client.Object, key string) error {
	current := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return err
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return err
	}
	for field := range content {
		if !ownField(field) {
			delete(content, field)
		}
	}
	for field, value := range wanted {
		if !ownField(field) {
			content[field] = value
		}
	}
	merged := &unstructured.Unstructured{Object: content}
	merged.SetLabels(added(withoutKey(current.GetLabels(), key), obj.GetLabels()))
	merged.SetAnnotations(added(withoutKey(current.GetAnnotations(), key), obj.GetAnnotations()))
	if u, ok := obj.(*unstructured.Unstructured); ok {
		merged.SetGroupVersionKind(u.GroupVersionKind())
		return c.Update(ctx, merged)
	}
	typed := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		return err
	}
	return c.Update(ctx, typed)
}

// ownField reports whether a field of an object is not part of the content that users provide.
func ownField(field string) bool {
	switch field {
	case "apiVersion", "kind", "metadata", "status":
		return true
	}
	return false
}

func added(to, from map[string]string) map[string]string {
	if len(from) == 0 {
		return to
	}
	return labels.Merge(to, from)
}
