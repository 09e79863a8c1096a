// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Step is something that users do, or wait for. Users see what the API server has, and their requests do not fail.
type Step struct {
	name string
	do   func(ctx context.Context, c client.Client) error
	// settle is true for a step that waits until all is quiet.
	settle bool
	sleep  time.Duration
}

// Steps are steps one after the other.
func Steps(steps ...Step) []Step { return steps }

// Settle waits until all is quiet: faults have stopped, caches have caught up, and no reconcile is due that would
// change anything. The oracles look at what there is then.
//
// Who looks again and again is waited for as long as something comes of it, and another minute. Who comes back after
// half an hour or more is waited for once, if that is not longer than half of [Scenario.Patience]: what is done then
// may be the same each time. All else that only time brings needs a [Sleep] before.
func Settle() Step { return Step{name: "settle", settle: true} }

// Sleep lets time pass, and what happens meanwhile happen.
func Sleep(d time.Duration) Step { return Step{name: "wait " + d.String(), sleep: d} }

// Do does something else. The client reads what the API server has.
func Do(name string, do func(ctx context.Context, c client.Client) error) Step {
	return Step{name: name, do: do}
}

// Apply creates an object, or makes the existing one have the same content: all is replaced but metadata and status;
// labels and annotations are added.
func Apply(obj client.Object) Step {
	return Step{name: "apply " + describe(obj), do: func(ctx context.Context, c client.Client) error {
		err := replace(ctx, c, obj)
		if apierrs.IsNotFound(err) {
			return c.Create(ctx, obj.DeepCopyObject().(client.Object))
		}
		return err
	}}
}

// Update is Apply for an object that must be there already.
func Update(obj client.Object) Step {
	return Step{
		name: "update " + describe(
			obj,
		),
		do: func(ctx context.Context, c client.Client) error { return replace(ctx, c, obj) },
	}
}

// Change changes an object, which must be there.
func Change[T client.Object](obj T, change func(T)) Step {
	return Step{name: "change " + describe(obj), do: func(ctx context.Context, c client.Client) error {
		current := obj.DeepCopyObject().(T)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
			return err
		}
		change(current)
		return c.Update(ctx, current)
	}}
}

// Delete deletes an object, and does not wait until it is gone.
func Delete(obj client.Object) Step {
	return Step{name: "delete " + describe(obj), do: func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, obj.DeepCopyObject().(client.Object)))
	}}
}

// Lifecycle is what happens to most objects: it is created, changed, and deleted, and each time all settles.
func Lifecycle[T client.Object](obj T, changes ...func(T)) []Step {
	steps := []Step{Apply(obj), Settle()}
	for _, change := range changes {
		steps = append(steps, Change(obj, change), Settle())
	}
	return append(steps, Delete(obj), Settle())
}

// replace makes an object have the content of another one.
func replace(ctx context.Context, c client.Client, obj client.Object) error {
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
	merged.SetLabels(added(current.GetLabels(), obj.GetLabels()))
	merged.SetAnnotations(added(current.GetAnnotations(), obj.GetAnnotations()))
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

// ownField is true for what is not the content that a user gives.
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
	sum := make(map[string]string, len(to)+len(from))
	for _, m := range []map[string]string{to, from} {
		for key, value := range m {
			sum[key] = value
		}
	}
	return sum
}

// describe names an object for people.
func describe(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	return fmt.Sprintf("%s %s", kind, client.ObjectKeyFromObject(obj))
}
