// SPDX-License-Identifier: Apache-2.0

package testing

import (
	gocmp "cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

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
