// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"sync"
	"sync/atomic"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/resource"
)

func TestCluster_patches(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	read := must[*MyKind](t)(store.Add(t.Context(), e.newMyKind("a")))
	must[*MyKind](t)(
		store.Patch(
			t.Context(), e.a, types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/otherInfo","value":"patched"}]`),
		),
	)
	after := read.DeepCopy()
	after.Spec.SomeInfo = "merged"
	check := unchanged(t, after)
	merged := must[*MyKind](t)(store.Merge(t.Context(), read, after))
	check()
	if merged.Spec.SomeInfo != "merged" || merged.Spec.OtherInfo != "patched" {
		t.Errorf("merged to %+v", merged.Spec)
	}

	apply := e.newMyKind("a", func(o *MyKind) { o.Spec = MyKindSpec{Replicas: 3, Tags: []string{"x"}} })
	check = unchanged(t, apply)
	applied := must[*MyKind](t)(store.Apply(t.Context(), apply, "one"))
	check()
	if applied.Spec.SomeInfo != "merged" || applied.Spec.Replicas != 3 ||
		applied.GroupVersionKind() != myKind.GroupVersionKind() {
		t.Errorf("applied to %+v", applied)
	}
	other := e.newMyKind("a", func(o *MyKind) { o.Spec = MyKindSpec{Replicas: 4} })
	if _, err := store.Apply(t.Context(), other, "two"); !apierrs.IsConflict(err) {
		t.Errorf("error %v, want a conflict of owners", err)
	}
	forced := must[*MyKind](t)(store.Apply(t.Context(), other, "two", client.ForceOwnership))
	if forced.Spec.Replicas != 4 {
		t.Errorf("forced to %+v", forced.Spec)
	}
	// An object that was read can be applied, although the API server rejects managed fields.
	apply = forced.DeepCopy()
	apply.Spec.Tags = nil
	must[*MyKind](t)(store.Apply(t.Context(), apply, "three", client.ForceOwnership))
	fresh := must[*MyKind](t)(store.Apply(t.Context(), e.newMyKind("b"), "one"))
	if fresh.UID == "" || fresh.UID == applied.UID {
		t.Errorf("applied a new object: %+v", fresh.ObjectMeta)
	}

	u := newStore[*unstructured.Unstructured](t, dynamic, e.clients)
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tags": []any{"dynamic"}}}}
	config.SetNamespace(e.Namespace)
	config.SetName("b")
	check = unchanged(t, config)
	got := must[*unstructured.Unstructured](t)(u.Apply(t.Context(), config, "two"))
	check()
	if tags, _, _ := unstructured.NestedStringSlice(got.Object, "spec", "tags"); len(tags) != 1 || tags[0] != "dynamic" {
		t.Errorf("applied to %v", got.Object)
	}
}

// Ten writers add one each to the same object. No addition is lost.
func TestCluster_updateObject(t *testing.T) {
	e := newEnv(t)
	store := newStore[*MyKind](t, myKind, e.clients)
	must[*MyKind](t)(store.Add(t.Context(), e.newMyKind("a")))
	const writers = 10
	var group sync.WaitGroup
	// No writer writes before all have read.
	var read sync.WaitGroup
	read.Add(writers)
	var retried atomic.Int32
	for range writers {
		group.Go(func() {
			for _, part := range []resource.SubresourceName{"", resource.SubresourceStatus} {
				_, err := resource.UpdateObject(t.Context(), store, e.a, func(obj *MyKind, isRetry bool) (*MyKind, error) {
					if isRetry {
						retried.Add(1)
					} else if part == "" {
						read.Done()
						read.Wait()
					}
					if part == "" {
						obj.Spec.Replicas++
					} else {
						obj.Status.Replicas++
					}
					return obj, nil
				}, resource.UpdateOptions{Retries: new(10 * writers), Subresource: part})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got := must[*MyKind](t)(store.Get(t.Context(), e.a))
	if got.Spec.Replicas != writers || got.Status.Replicas != writers {
		t.Errorf("spec %d, status %d, want %d", got.Spec.Replicas, got.Status.Replicas, writers)
	}
	if retried.Load() < writers-1 {
		t.Errorf("%d retries, want at least one of all but the first writer", retried.Load())
	}
}
