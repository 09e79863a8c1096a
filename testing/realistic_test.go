// SPDX-License-Identifier: Apache-2.0

package testing

import (
	gocmp "cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
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

// applyFields applies fields of a Resource.
func applyFields(
	ctx context.Context, c client.Client, owner string, fields map[string]any, opts ...client.ApplyOption,
) error {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"fields": fields}}}
	u.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
	u.SetNamespace("my-namespace")
	u.SetName("one")
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), append(opts, client.FieldOwner(owner))...)
}

func getFields(ctx context.Context, t *testing.T, c client.Client) map[string]string {
	t.Helper()
	r := &fixture.Resource{}
	mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, r))
	return r.Spec.Fields
}

func TestRealistic_applyOwnsFields(t *testing.T) {
	ctx, c := newRealistic(t)
	mustDo(t,
		applyFields(ctx, c, "me", map[string]any{"mine": "1", "ours": "1"}),
		applyFields(ctx, c, "you", map[string]any{"ours": "1", "yours": "1"}),
		applyFields(ctx, c, "me", map[string]any{}),
	)
	if diff := cmp.Diff(map[string]string{"ours": "1", "yours": "1"}, getFields(ctx, t, c)); diff != "" {
		t.Errorf("after I apply nothing any longer (-want +got):\n%s", diff)
	}

	err := applyFields(ctx, c, "me", map[string]any{"yours": "2"})
	if !apierrs.IsConflict(err) {
		t.Errorf("error = %v", err)
	}
	mustDo(
		t, applyFields(ctx, c, "me", map[string]any{"yours": "2"}, client.ForceOwnership),
		applyFields(ctx, c, "you", map[string]any{"ours": "1"}),
	)
	if diff := cmp.Diff(map[string]string{"ours": "1", "yours": "2"}, getFields(ctx, t, c)); diff != "" {
		t.Errorf("after I have forced a field of yours (-want +got):\n%s", diff)
	}
}

// Fields that are written without an apply change their owner too.
func TestRealistic_updateOwnsFields(t *testing.T) {
	for _, name := range []string{"", "you"} {
		ctx, c := newRealistic(t)
		mustDo(t, applyFields(ctx, c, "me", map[string]any{"a": "1", "b": "1"}))
		r := &fixture.Resource{}
		mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, r))
		r.Spec.Fields["a"] = "2"
		mustDo(t, c.Update(ctx, r, client.FieldOwner(name)))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"fields":{"b":"2"}}}`))
		mustDo(t, c.Patch(ctx, r, patch, client.FieldOwner(name)))
		err := applyFields(ctx, c, "me", map[string]any{"a": "1"})
		if want := gocmp.Or(name, "unknown"); !apierrs.IsConflict(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("by %q: error = %v", name, err)
		}
		mustDo(t, applyFields(ctx, c, "me", map[string]any{}))
		if diff := cmp.Diff(map[string]string{"a": "2", "b": "2"}, getFields(ctx, t, c)); diff != "" {
			t.Errorf("by %q (-want +got):\n%s", name, diff)
		}
	}
}

// Applying the same configuration again changes nothing.
func TestRealistic_applyAgain(t *testing.T) {
	ctx, c := newRealistic(t)
	var versions []string
	for _, value := range []string{"1", "1", "2"} {
		mustDo(t, applyFields(ctx, c, "me", map[string]any{"a": value}))
		r := &fixture.Resource{}
		mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, r))
		versions = append(versions, string(r.UID[len(r.UID)-1:])+" "+r.ResourceVersion+" "+string(rune('0'+r.Generation)))
	}
	if diff := cmp.Diff([]string{"1 1 1", "1 1 1", "1 2 2"}, versions); diff != "" {
		t.Errorf("uid, resource version and generation (-want +got):\n%s", diff)
	}
}

// Items of lists of built-in kinds are merged by their key.
func TestRealistic_applyMergesLists(t *testing.T) {
	ctx, c := newRealistic(t)
	apply := func(owner, container string) error {
		labels := map[string]string{"app": "one"}
		return c.Apply(ctx, appsv1apply.Deployment("one", "my-namespace").WithSpec(appsv1apply.DeploymentSpec().
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labels).WithSpec(corev1apply.PodSpec().
				WithContainers(corev1apply.Container().WithName(container).WithImage("example.com/"+container)))),
		), client.FieldOwner(owner))
	}
	mustDo(t, apply("me", "mine"), apply("you", "yours"), apply("me", "other"))
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, deployment))
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	var names []string
	for _, container := range containers {
		names = append(names, container.(map[string]any)["name"].(string))
	}
	if len(names) != 2 || names[0] != "yours" && names[1] != "yours" {
		t.Errorf("containers = %q", names)
	}
	deployment.SetLabels(map[string]string{"a": "1"})
	mustDo(t, c.Update(ctx, deployment))
	if fields := deployment.GetManagedFields(); fields != nil {
		t.Errorf("managed fields = %v", fields)
	}
}

// An apply of the status owns only the status, and other applies do not own it.
func TestRealistic_applyStatus(t *testing.T) {
	ctx, c := newRealistic(t)
	ac := func(text string) *corev1apply.PodApplyConfiguration {
		pod := corev1apply.Pod("one", "my-namespace")
		mustDo(t, json.Unmarshal([]byte(text), pod))
		return pod
	}
	owner := client.FieldOwner("me")
	mustDo(t,
		c.Apply(ctx, ac(`{"spec":{"nodeName":"a"},"status":{"phase":"Running"}}`), client.FieldOwner("you")),
		c.Status().Apply(ctx, ac(`{"spec":{"nodeName":"b"},"status":{"phase":"Pending","message":"mine"}}`), owner),
	)
	get := func() *corev1.Pod {
		pod := &corev1.Pod{}
		mustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, pod))
		return pod
	}
	if pod := get(); pod.Spec.NodeName != "a" || pod.Status.Phase != "Pending" {
		t.Errorf("applied: %v", pod)
	}
	mustDo(
		t, c.Status().Apply(ctx, ac(`{"status":{"phase":"Running"}}`), owner),
		c.Apply(ctx, ac(`{"spec":{"nodeName":"c"}}`), client.FieldOwner("you")),
	)
	if pod := get(); pod.Spec.NodeName != "c" || pod.Status.Phase != "Running" || pod.Status.Message != "" {
		t.Errorf("applied again: %v", pod)
	}
}

// Lists of custom resources have one owner, because their schema is unknown.
func TestRealistic_applyListsOfCustomResources(t *testing.T) {
	ctx, c := newRealistic(t)
	apply := func(owner string, items ...any) error {
		gadget := newGadget("one")
		gadget.Object["spec"] = map[string]any{"items": items}
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(gadget), client.FieldOwner(owner))
	}
	mustDo(t, apply("me", "a"))
	if err := apply("you", "b"); !apierrs.IsConflict(err) {
		t.Errorf("error = %v", err)
	}
}

// Fields from before the first apply have an owner too.
func TestRealistic_applyAfterCreate(t *testing.T) {
	ctx, c := newRealistic(t, &fixture.Resource{
		ObjectMeta: objectMeta("one"), Spec: fixture.ResourceSpec{Fields: map[string]string{"a": "1"}},
	})
	err := applyFields(ctx, c, "me", map[string]any{"a": "2"})
	if !apierrs.IsConflict(err) || !strings.Contains(err.Error(), "before-first-apply") {
		t.Errorf("error = %v", err)
	}
	mustDo(t, applyFields(ctx, c, "me", map[string]any{"a": "1", "b": "1"}), applyFields(ctx, c, "me", map[string]any{}))
	if diff := cmp.Diff(map[string]string{"a": "1"}, getFields(ctx, t, c)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An object that is being deleted is removed when its last finalizer is no longer applied.
func TestRealistic_applyNoFinalizerAnyLonger(t *testing.T) {
	ctx, c := newRealistic(t)
	owner := client.FieldOwner("me")
	mustDo(t,
		c.Apply(ctx, corev1apply.ConfigMap("one", "my-namespace").WithFinalizers("example.com/mine"), owner),
		c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta("one")}),
	)
	ac := corev1apply.ConfigMap("one", "my-namespace").WithFinalizers("example.com/mine").WithData(
		map[string]string{"a": "1"},
	)
	mustDo(t, c.Apply(ctx, ac, owner))
	other := corev1apply.ConfigMap("one", "my-namespace").WithData(map[string]string{"b": "1"})
	mustDo(t, c.Apply(ctx, other, client.FieldOwner("you")))
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, other.Data); diff != "" || other.DeletionTimestamp == nil {
		t.Errorf("data after you have applied (-want +got):\n%s", diff)
	}
	mustDo(t, c.Apply(ctx, corev1apply.ConfigMap("one", "my-namespace"), owner))
	if err := c.Get(
		ctx, client.ObjectKey{Namespace: "my-namespace", Name: "one"}, &corev1.ConfigMap{},
	); !apierrs.IsNotFound(err) {
		t.Errorf("error = %v", err)
	}
}
