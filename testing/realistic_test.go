// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtime "trueup.dev/time"
)

// realisticNow is the time of these tests. Servers store times in seconds.
var realisticNow = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

// newRealistic returns a realistic client, and the context to use with it.
func newRealistic(t *testing.T, given ...client.Object) (context.Context, client.Client) {
	t.Helper()
	config := &ExpectConfig{
		Scheme: fixture.NewScheme(), StatusSubResourceTypes: []client.Object{
			&fixture.Resource{}, newGadget(""),
		}, GivenObjects: given, Realistic: true,
	}
	return rtime.StashNow(t.Context(), realisticNow), config.Config().Client
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Created objects are equal in each run of a test, and the caller's object equals the stored one.
func TestRealistic_create(t *testing.T) {
	ctx, c := newRealistic(t)
	resource := &fixture.Resource{
		ObjectMeta: objectMeta("one"), Status: fixture.ResourceStatus{Fields: map[string]string{"a": "1"}},
	}
	resource.Generation, resource.UID, resource.DeletionTimestamp = 7, "mine", new(metav1.Now())
	configMap := &corev1.ConfigMap{ObjectMeta: objectMeta("one")}
	gadget := newGadget("one")
	gadget.Object["status"] = map[string]any{"a": "1"}
	untyped := &unstructured.Unstructured{
		Object: map[string]any{"status": map[string]any{"fields": map[string]any{"a": "1"}}},
	}
	untyped.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
	untyped.SetName("untyped")
	mustDo(t, c.Create(ctx, resource), c.Create(ctx, configMap), c.Create(ctx, gadget), c.Create(ctx, untyped))

	created := func(name, uid string, generation int64) metav1.ObjectMeta {
		m := objectMeta(name)
		m.UID, m.Generation, m.ResourceVersion = types.UID("00000000-0000-0000-0000-"+uid), generation, "1"
		m.CreationTimestamp = metav1.NewTime(realisticNow.Truncate(time.Second))
		return m
	}
	if diff := cmp.Diff(&fixture.Resource{ObjectMeta: created("one", "000000000001", 1)}, resource); diff != "" {
		t.Errorf("typed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1.ConfigMap{ObjectMeta: created("one", "000000000002", 0)}, configMap); diff != "" {
		t.Errorf("without a generation (-want +got):\n%s", diff)
	}
	if gadget.Object["status"] != nil || gadget.GetGeneration() != 1 ||
		gadget.GetUID() != "00000000-0000-0000-0000-000000000003" {
		t.Errorf("of an unknown kind: %v", gadget.Object)
	}
	if fields, _, _ := unstructured.NestedMap(untyped.Object, "status", "fields"); fields != nil ||
		untyped.GetGeneration() != 1 || untyped.GetKind() != "Resource" {
		t.Errorf("unstructured: %v", untyped.Object)
	}
	for _, obj := range []client.Object{resource, configMap, gadget, untyped} {
		stored := obj.DeepCopyObject().(client.Object)
		mustDo(t, c.Get(ctx, client.ObjectKeyFromObject(obj), stored))
		if diff := cmp.Diff(obj, stored); diff != "" {
			t.Errorf("-returned +stored:\n%s", diff)
		}
	}
}

// A create that fails does not change the caller's object.
func TestRealistic_createOfWhatExists(t *testing.T) {
	ctx, c := newRealistic(t, &fixture.Resource{ObjectMeta: objectMeta("one")})
	resource := &fixture.Resource{
		ObjectMeta: objectMeta("one"), Status: fixture.ResourceStatus{Fields: map[string]string{"a": "1"}},
	}
	before := resource.DeepCopy()
	if err := c.Create(ctx, resource); !apierrs.IsAlreadyExists(err) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff(before, resource); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestRealistic_given(t *testing.T) {
	resource := &fixture.Resource{
		ObjectMeta: objectMeta("one"), Status: fixture.ResourceStatus{Fields: map[string]string{"a": "1"}},
	}
	older := &fixture.Resource{ObjectMeta: objectMeta("older")}
	older.Generation = 7
	ctx, c := newRealistic(t, resource, older, &corev1.ConfigMap{ObjectMeta: objectMeta("one")})
	c.(TestClient).AddGiven(&fixture.Resource{ObjectMeta: objectMeta("added")})
	var got []int64
	for _, name := range []string{"one", "older", "added"} {
		stored := &fixture.Resource{}
		mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: name}, stored))
		got = append(got, stored.Generation)
		if name == "one" && stored.Status.Fields["a"] != "1" {
			t.Error("the status of a given object is missing")
		}
	}
	configMap := &corev1.ConfigMap{}
	mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, configMap))
	if diff := cmp.Diff([]int64{1, 7, 1, 0}, append(got, configMap.Generation)); diff != "" {
		t.Errorf("generations (-want +got):\n%s", diff)
	}
}

// Writes that change the generation and the resource version of an object.
func TestRealistic_versions(t *testing.T) {
	patch := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	tests := map[string]struct {
		write                 func(ctx context.Context, c client.Client, r *fixture.Resource) error
		generation            int64
		movesResourceVersion  bool
		wantSpecA, wantStatus string
	}{
		"update of nothing": {
			write:      func(ctx context.Context, c client.Client, r *fixture.Resource) error { return c.Update(ctx, r) },
			generation: 1,
		},
		"update of the generation": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Generation = 7
				return c.Update(ctx, r)
			},
			generation: 1,
		},
		"update of the status": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Status.Fields = map[string]string{"a": "2"}
				return c.Update(ctx, r)
			},
			generation: 1,
		},
		"update of metadata": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Finalizers = []string{"example.com/wait"}
				return c.Update(ctx, r)
			},
			generation: 1, movesResourceVersion: true,
		},
		"update of the spec": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Spec.Fields["a"] = "2"
				return c.Update(ctx, r)
			},
			generation: 2, movesResourceVersion: true, wantSpecA: "2",
		},
		"patch of nothing": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				return c.Patch(ctx, r, patch(`{"spec":{"fields":{"a":"1"}}}`))
			},
			generation: 1,
		},
		"patch of the spec": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				return c.Patch(ctx, r, patch(`{"spec":{"fields":{"a":"2"}}}`))
			},
			generation: 2, movesResourceVersion: true, wantSpecA: "2",
		},
		"status update of nothing": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Spec.Fields["a"] = "2"
				return c.Status().Update(ctx, r)
			},
			generation: 1,
		},
		"status update": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				r.Status.Fields = map[string]string{"a": "2"}
				return c.Status().Update(ctx, r)
			},
			generation: 1, movesResourceVersion: true, wantStatus: "2",
		},
		"status patch": {
			write: func(ctx context.Context, c client.Client, r *fixture.Resource) error {
				return c.Status().Patch(ctx, r, patch(`{"spec":{"fields":{"a":"2"}},"status":{"fields":{"a":"2"}}}`))
			},
			generation: 1, movesResourceVersion: true, wantStatus: "2",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, c := newRealistic(t, &fixture.Resource{
				ObjectMeta: objectMeta("one"), Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
			})
			r := &fixture.Resource{}
			mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, r))
			before := r.ResourceVersion
			mustDo(t, test.write(ctx, c, r))
			stored := &fixture.Resource{}
			mustDo(t, c.Get(ctx, client.ObjectKeyFromObject(r), stored))
			if diff := cmp.Diff(stored, r); diff != "" {
				t.Errorf("-stored +returned:\n%s", diff)
			}
			if stored.Generation != test.generation || (stored.ResourceVersion != before) != test.movesResourceVersion {
				t.Errorf("generation = %d, resource version = %s", stored.Generation, stored.ResourceVersion)
			}
			wantSpecA := test.wantSpecA
			if wantSpecA == "" {
				wantSpecA = "1"
			}
			if stored.Spec.Fields["a"] != wantSpecA || stored.Status.Fields["a"] != test.wantStatus {
				t.Errorf("stored = %v", stored)
			}
		})
	}
}

// The identity of an object does not change.
func TestRealistic_identity(t *testing.T) {
	ctx, c := newRealistic(t)
	configMap := &corev1.ConfigMap{ObjectMeta: objectMeta("one")}
	mustDo(t, c.Create(ctx, configMap))
	created := configMap.DeepCopy()
	configMap.UID, configMap.CreationTimestamp = "", metav1.Time{}
	configMap.Data = map[string]string{"a": "1"}
	mustDo(t, c.Update(ctx, configMap))
	if configMap.UID != created.UID || !configMap.CreationTimestamp.Equal(&created.CreationTimestamp) {
		t.Errorf("after an update without them: %v", configMap)
	}
	configMap.UID = "another"
	if err := c.Update(ctx, configMap); !apierrs.IsConflict(err) {
		t.Errorf("error = %v", err)
	}
}

// The caller's unstructured object equals the stored one, although the store keeps the Go type.
func TestRealistic_updateUnstructured(t *testing.T) {
	ctx, c := newRealistic(t, &fixture.Resource{
		ObjectMeta: objectMeta("one"), Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
	})
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
	mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, u))
	mustDo(t, c.Update(ctx, u))
	if u.GetResourceVersion() != "999" {
		t.Errorf("after an update of nothing: %v", u.Object)
	}
	mustDo(t, unstructured.SetNestedField(u.Object, "2", "spec", "fields", "a"), c.Update(ctx, u))
	if u.GetResourceVersion() != "1000" || u.GetGeneration() != 2 || u.GetKind() != "Resource" {
		t.Errorf("after an update: %v", u.Object)
	}
	mustDo(t, unstructured.SetNestedField(u.Object, "1", "status", "fields", "a"), c.Status().Update(ctx, u))
	if u.GetResourceVersion() != "1001" || u.GetGeneration() != 2 {
		t.Errorf("after a status update: %v", u.Object)
	}
	mustDo(t, unstructured.SetNestedField(u.Object, "3", "spec", "fields", "a"), c.Update(ctx, u, client.DryRunAll))
	if value, _, _ := unstructured.NestedString(u.Object, "spec", "fields", "a"); value != "3" {
		t.Errorf("after a dry run: %v", u.Object)
	}
}

// An object that an update removes is not read again.
func TestRealistic_delete(t *testing.T) {
	ctx, c := newRealistic(t)
	gadget := newGadget("one")
	gadget.SetFinalizers([]string{"example.com/wait"})
	mustDo(t, c.Create(ctx, gadget), c.Delete(ctx, gadget), c.Get(ctx, client.ObjectKeyFromObject(gadget), gadget))
	want := metav1.NewTime(realisticNow.Truncate(time.Second))
	if !gadget.GetDeletionTimestamp().Equal(&want) || *gadget.GetDeletionGracePeriodSeconds() != 0 ||
		gadget.GetGeneration() != 2 {
		t.Errorf("terminating: %v", gadget.Object)
	}
	mustDo(t, c.Delete(rtime.StashNow(t.Context(), realisticNow.Add(time.Hour)), gadget))
	again := newGadget("")
	mustDo(t, c.Get(ctx, client.ObjectKeyFromObject(gadget), again))
	if diff := cmp.Diff(gadget, again); diff != "" {
		t.Errorf("-deleted +deleted again:\n%s", diff)
	}
	gadget.SetFinalizers(nil)
	mustDo(t, c.Update(ctx, gadget))
	if err := c.Get(ctx, client.ObjectKeyFromObject(gadget), gadget); !apierrs.IsNotFound(err) {
		t.Errorf("error = %v", err)
	}
}

func TestRealistic_deletePreconditions(t *testing.T) {
	ctx, c := newRealistic(t)
	configMap := &corev1.ConfigMap{ObjectMeta: objectMeta("one")}
	mustDo(t, c.Create(ctx, configMap))
	if err := c.Delete(ctx, configMap, client.Preconditions{UID: new(types.UID("other"))}); !apierrs.IsConflict(err) {
		t.Errorf("error with another uid = %v", err)
	}
	mustDo(t, c.Delete(ctx, configMap, client.Preconditions{UID: &configMap.UID}))
	if err := c.Delete(ctx, configMap, client.Preconditions{UID: &configMap.UID}); !apierrs.IsNotFound(err) {
		t.Errorf("error for a deleted object = %v", err)
	}
}
