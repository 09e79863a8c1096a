// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

func TestDefaultDifferOfCalls(t *testing.T) {
	d := DefaultDiffer
	track := CreateTrackRequest("", "ConfigMap", "web", "theme").By("web", "blog")
	selecting := func(selector labels.Selector) TrackRequest {
		return TrackRequest{TrackedReference: tracker.Reference{Kind: "ConfigMap", Selector: selector}}
	}
	collection := func(l labels.Selector, f fields.Selector) DeleteCollectionRef {
		return DeleteCollectionRef{Kind: "ConfigMap", Namespace: "web", Labels: l, Fields: f}
	}
	response := func(code int32, patches ...jsonpatch.Operation) admission.Response {
		return admission.Response{
			AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code}}, Patches: patches,
		}
	}

	tests := map[string]struct {
		diff string
		// contains is what the difference shows, "" for no difference.
		contains string
	}{
		"result, same": {
			diff: d.Result(reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.Result{RequeueAfter: time.Minute}),
		},
		"result, different": {
			diff: d.Result(reconcilers.Result{}, reconcilers.Result{RequeueAfter: time.Minute}), contains: "RequeueAfter",
		},

		"track, same": {diff: d.TrackRequest(track, track)},
		"track, different": {
			diff: d.TrackRequest(track, CreateTrackRequest("", "Secret", "web", "theme").By("web", "blog")), contains: "Secret",
		},
		"track, same selector": {
			diff: d.TrackRequest(
				selecting(parsedLabels("a=1,b=2")), selecting(labels.SelectorFromSet(labels.Set{"b": "2", "a": "1"})),
			),
		},
		"track, different selector": {
			diff: d.TrackRequest(selecting(parsedLabels("a=1")), selecting(parsedLabels("a=2"))), contains: "a=2",
		},
		"track, everything and none": {diff: d.TrackRequest(selecting(nil), selecting(labels.Everything()))},

		"event, same": {diff: d.Event(Event{Reason: "Created"}, Event{Reason: "Created"})},
		"event, different": {
			diff: d.Event(Event{Reason: "Created"}, Event{Reason: "Updated"}), contains: "Updated",
		},
		"event, different kind": {
			diff: d.Event(Event{}, Event{TypeMeta: metav1.TypeMeta{Kind: "Resource"}}), contains: "Resource",
		},
		"event, different related object": {
			diff: d.Event(Event{}, Event{Related: &corev1.ObjectReference{UID: "u"}}), contains: "Related",
		},
		"event, same related object": {
			diff: d.Event(Event{Related: &corev1.ObjectReference{UID: "u"}}, Event{Related: &corev1.ObjectReference{UID: "u"}}),
		},
		"event, message in the other form": {diff: d.Event(Event{Message: "m"}, Event{Note: "m"}), contains: "Note"},

		"apply, same": {
			diff: d.ApplyRef(ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "b")}, ApplyRef{
				ApplyConfiguration: corev1ac.ConfigMap("a", "b"),
			}),
		},
		"apply, different": {
			diff: d.ApplyRef(ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "b")}, ApplyRef{
				ApplyConfiguration: corev1ac.ConfigMap("a", "c"),
			}),
			contains: "namespace",
		},
		"apply, different name": {diff: d.ApplyRef(ApplyRef{Name: "a"}, ApplyRef{Name: "b"}), contains: "Name"},
		"patch, same": {
			diff: d.PatchRef(PatchRef{Patch: []byte(`{"a":1}`)}, PatchRef{Patch: []byte(`{"a":1}`)}),
		},
		"patch, different": {
			diff: d.PatchRef(PatchRef{Patch: []byte(`{"a":1}`)}, PatchRef{Patch: []byte(`{"a":2}`)}), contains: `{"a":2}`,
		},
		"patch, different type": {
			diff:     d.PatchRef(PatchRef{PatchType: types.MergePatchType}, PatchRef{PatchType: types.JSONPatchType}),
			contains: "json-patch",
		},
		"patch, different subresource": {
			diff: d.PatchRef(PatchRef{}, PatchRef{SubResource: "status"}), contains: "SubResource",
		},
		"delete, same":      {diff: d.DeleteRef(DeleteRef{Kind: "A"}, DeleteRef{Kind: "A"})},
		"delete, different": {diff: d.DeleteRef(DeleteRef{Kind: "A"}, DeleteRef{Kind: "B"}), contains: "Kind"},
		"collection, same": {
			diff: d.DeleteCollectionRef(
				collection(labels.SelectorFromSet(labels.Set{"a": "1"}), fields.Everything()), collection(parsedLabels("a=1"), nil),
			),
		},
		"collection, different labels": {
			diff:     d.DeleteCollectionRef(collection(parsedLabels("a=1"), nil), collection(parsedLabels("a=2"), nil)),
			contains: "Labels",
		},
		"collection, different fields": {
			diff:     d.DeleteCollectionRef(collection(nil, nil), collection(nil, fields.OneTermEqualSelector("f", "1"))),
			contains: "Fields",
		},
		"collection, different kind": {
			diff:     d.DeleteCollectionRef(collection(nil, nil), DeleteCollectionRef{Kind: "Secret", Namespace: "web"}),
			contains: "Secret",
		},
		"response, same":      {diff: d.WebhookResponse(response(200), response(200))},
		"response, different": {diff: d.WebhookResponse(response(200), response(403)), contains: "403"},
		"response, different operations": {
			diff:     d.WebhookResponse(response(200), response(200, jsonpatch.NewOperation("remove", "/spec/a", nil))),
			contains: "/spec/a",
		},

		"stashed value, same":             {diff: d.StashedValue("a", "a", "key")},
		"stashed value, different":        {diff: d.StashedValue("a", "b", "key"), contains: `"b"`},
		"stashed value, other type":       {diff: d.StashedValue(int64(1), 1, "key"), contains: "int64"},
		"stashed value, nothing":          {diff: d.StashedValue(nil, nil, "key")},
		"stashed value, nil of a type":    {diff: d.StashedValue((*corev1.ConfigMap)(nil), (*corev1.ConfigMap)(nil), "key")},
		"stashed value, empty":            {diff: d.StashedValue([]string{}, []string(nil), "key")},
		"stashed value, unexported field": {diff: d.StashedValue(struct{ a int }{1}, struct{ a int }{2}, "key")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.contains == "" && tt.diff != "" || !strings.Contains(tt.diff, tt.contains) || tt.contains != "" &&
				tt.diff == "" {
				t.Errorf("want a difference with %q, got %q", tt.contains, tt.diff)
			}
		})
	}
}

// What counts differs between the methods for objects.
func TestDefaultDifferOfObjects(t *testing.T) {
	typed := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog", Labels: map[string]string{}}}
	typed.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: now}}
	content := unstructuredOf(map[string]any{
		"apiVersion": "fixture.trueup.dev/v1", "kind": "Resource",
		"metadata": map[string]any{"namespace": "web", "name": "blog"},
		"spec":     map[string]any{"fields": map[string]any{"a": "1"}},
		"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}},
		},
	})
	condition := func(u client.Object) map[string]any {
		return contentMap(u)["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	}

	const resource, write, status = "resource", "write", "status"
	methods := map[string]map[string]func(expected, actual client.Object) string{
		resource: {"Resource": DefaultDiffer.Resource},
		write: {
			"ResourceCreate": DefaultDiffer.ResourceCreate,
			"ResourceUpdate": DefaultDiffer.ResourceUpdate,
			"StashedValue": func(expected, actual client.Object) string {
				return DefaultDiffer.StashedValue(expected, actual, "key")
			},
		},
		status: {"ResourceStatusUpdate": DefaultDiffer.ResourceStatusUpdate},
	}
	tests := map[string]struct {
		base   client.Object
		change func(client.Object)
		// counts are the groups of methods that see the change.
		counts []string
	}{
		"nothing":      {base: typed, change: func(client.Object) {}},
		"empty labels": {base: typed, change: func(o client.Object) { o.SetLabels(nil) }},
		"kind":         {base: typed, change: func(o client.Object) { o.(*fixture.Resource).Kind = "Resource" }},
		"transition": {
			base: typed, change: func(o client.Object) { o.(*fixture.Resource).Status.Conditions[0].LastTransitionTime = later },
		},
		"creation timestamp": {
			base: typed, change: func(o client.Object) { o.SetCreationTimestamp(now) }, counts: []string{resource},
		},
		"resource version": {
			base: typed, change: func(o client.Object) { o.SetResourceVersion("1") }, counts: []string{resource},
		},
		"uid": {
			base: typed, change: func(o client.Object) { o.SetUID("u") }, counts: []string{resource, write},
		},
		"labels": {
			base: typed, change: func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) },
			counts: []string{resource, write},
		},
		"name": {
			base: typed, change: func(o client.Object) { o.SetName("x") }, counts: []string{resource, write},
		},
		"spec": {
			base: typed, change: func(o client.Object) { o.(*fixture.Resource).Spec.ErrOnMarshal = true },
			counts: []string{resource, write},
		},
		"status": {
			base: typed, change: func(o client.Object) { o.(*fixture.Resource).Status.ObservedGeneration = 1 },
			counts: []string{resource, write, status},
		},
		"status, condition": {
			base: typed, change: func(o client.Object) {
				o.(*fixture.Resource).Status.Conditions[0].Status = metav1.ConditionFalse
			},
			counts: []string{resource, write, status},
		},

		"unstructured, nothing": {base: content, change: func(client.Object) {}},
		"unstructured, transition": {
			base: content, change: func(o client.Object) { condition(o)["lastTransitionTime"] = "2026-02-02T03:04:05Z" },
		},
		"unstructured, creation timestamp": {
			base: content, change: func(o client.Object) { o.SetCreationTimestamp(now) }, counts: []string{resource},
		},
		"unstructured, resource version": {
			base: content, change: func(o client.Object) { o.SetResourceVersion("1") }, counts: []string{resource},
		},
		"unstructured, kind": {
			base: content, change: func(o client.Object) { contentMap(o)["kind"] = "Other" }, counts: []string{resource, write},
		},
		"unstructured, name": {
			base: content, change: func(o client.Object) { o.SetName("x") }, counts: []string{resource, write},
		},
		"unstructured, spec": {
			base: content, change: func(o client.Object) { contentMap(o)["spec"] = map[string]any{} },
			counts: []string{resource, write},
		},
		"unstructured, status": {
			base: content, change: func(o client.Object) { condition(o)["status"] = "False" },
			counts: []string{resource, write, status},
		},
		"unstructured, no status": {
			base: content, change: func(o client.Object) { delete(contentMap(o), "status") },
			counts: []string{resource, write, status},
		},
	}
	for name, tt := range tests {
		for group, methods := range methods {
			for method, diff := range methods {
				t.Run(name+"/"+method, func(t *testing.T) {
					changed := tt.base.DeepCopyObject().(client.Object)
					tt.change(changed)
					text := diff(tt.base, changed)
					if want := strings.Contains(strings.Join(tt.counts, " "), group); want != (text != "") {
						t.Errorf("a difference is expected: %v, got %q", want, text)
					}
				})
			}
		}
	}
}

func contentMap(obj client.Object) map[string]any {
	return obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
}

func TestDefaultDifferOfOtherObjects(t *testing.T) {
	type base struct{ fixture.Resource }
	embedding := func(ready string) *base {
		b := &base{}
		b.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready)}}
		return b
	}
	objects := []func(expected, actual client.Object) string{
		DefaultDiffer.Resource, DefaultDiffer.ResourceCreate, DefaultDiffer.ResourceUpdate,
		DefaultDiffer.ResourceStatusUpdate,
	}
	for i, diff := range objects {
		if diff(&corev1.ConfigMap{}, &corev1.Secret{}) == "" {
			t.Errorf("method %d: no difference between types", i)
		}
		if diff(&corev1.ConfigMap{}, nil) == "" {
			t.Errorf("method %d: no difference to nil", i)
		}
		if diff(embedding("True"), embedding("False")) == "" {
			t.Errorf("method %d: no difference in the status of an embedded object", i)
		}
		if text := diff(embedding("True"), embedding("True")); text != "" {
			t.Errorf("method %d: difference in an embedded object: %s", i, text)
		}
	}
}
