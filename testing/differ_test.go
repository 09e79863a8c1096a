// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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

const someDiff = "  same\n- expected\n+ actual\n  -not at the start\n"

// printsDiff is the environment variable that makes TestPrintDiff print.
const printsDiff = "TRUEUP_TEST_PRINT_DIFF"

// TestPrintDiff is what TestColorDiff runs in another process.
func TestPrintDiff(t *testing.T) {
	if os.Getenv(printsDiff) == "" {
		t.Skip("only of use to TestColorDiff")
	}
	_, _ = os.Stdout.WriteString(
		printsDiff + ColorizeDiff(someDiff) + DiffRemovedColor.Sprint("-expected") + DiffAddedColor.Sprint("+actual") +
			printsDiff,
	)
}

// The colors are decided on when the program starts.
func TestColorDiff(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want string
	}{
		"off": {
			want: "  same\n- expected\n+ actual\n  -not at the start\n\n-expected+actual",
		},
		"on without a terminal, with any value": {
			env: []string{"COLOR_DIFF="},
			want: "  same\n\x1b[31m- expected\x1b[0m\n\x1b[32m+ actual\x1b[0m\n  -not at the " +
				"start\n\n\x1b[31m-expected\x1b[0m\x1b[32m+actual\x1b[0m",
		},
		"on where other programs have no colors": {
			env: []string{"COLOR_DIFF=true", "NO_COLOR=1", "TERM=dumb"},
			want: "  same\n\x1b[31m- expected\x1b[0m\n\x1b[32m+ actual\x1b[0m\n  -not at the " +
				"start\n\n\x1b[31m-expected\x1b[0m\x1b[32m+actual\x1b[0m",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestPrintDiff$")
			for _, variable := range os.Environ() {
				if !strings.HasPrefix(variable, "COLOR_DIFF=") {
					cmd.Env = append(cmd.Env, variable)
				}
			}
			cmd.Env = append(append(cmd.Env, printsDiff+"=true"), tt.env...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			parts := strings.Split(string(out), printsDiff)
			if len(parts) != 3 {
				t.Fatalf("printed nothing: %s", out)
			}
			if diff := cmp.Diff(tt.want, parts[1]); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func unstructuredOf(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func withMeta(meta metav1.ObjectMeta) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func withMetadata(metadata map[string]any) *unstructured.Unstructured {
	return unstructuredOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

func withCondition(condition metav1.Condition) *fixture.Resource {
	r := &fixture.Resource{}
	r.Status.Conditions = []metav1.Condition{condition}
	return r
}

func withUnstructuredCondition(condition map[string]any) *unstructured.Unstructured {
	return unstructuredOf(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
}

func templateOf(meta metav1.ObjectMeta) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: meta}}}
}

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Hour))
)

// Each option ignores the one difference, without it there is one.
func TestIgnored(t *testing.T) {
	tests := map[string]struct {
		option cmp.Option
		a, b   any
	}{
		"transition of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{Type: "Ready", LastTransitionTime: now}), withCondition(metav1.Condition{
				Type: "Ready", LastTransitionTime: later,
			}),
		},
		"first transition of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{Type: "Ready"}), withCondition(metav1.Condition{
				Type: "Ready", LastTransitionTime: later,
			}),
		},
		"transition of a condition that has a pointer": {
			IgnoreLastTransitionTime,
			&struct{ LastTransitionTime *metav1.Time }{}, &struct{ LastTransitionTime *metav1.Time }{&now},
		},
		"transition of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{"lastTransitionTime": "2026-01-02T03:04:05Z"}),
			withUnstructuredCondition(map[string]any{"lastTransitionTime": nil}),
		},
		"first transition of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{}), withUnstructuredCondition(map[string]any{
				"lastTransitionTime": "2026-01-02T03:04:05Z",
			}),
		},
		"kind": {
			IgnoreTypeMeta,
			&corev1.ConfigMap{}, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}},
		},
		"kind of an item": {
			IgnoreTypeMeta,
			[]corev1.ConfigMap{{}},
			[]corev1.ConfigMap{{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}}},
		},
		"creation": {
			IgnoreCreationTimestamp,
			withMeta(metav1.ObjectMeta{Name: "a"}), withMeta(metav1.ObjectMeta{Name: "a", CreationTimestamp: now}),
		},
		"creation of a template": {
			IgnoreCreationTimestamp,
			templateOf(metav1.ObjectMeta{}), templateOf(metav1.ObjectMeta{CreationTimestamp: now}),
		},
		"unstructured creation": {
			IgnoreCreationTimestamp,
			withMetadata(map[string]any{"name": "a"}), withMetadata(map[string]any{
				"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z",
			}),
		},
		"unstructured creation that is null": {
			IgnoreCreationTimestamp,
			withMetadata(map[string]any{"name": "a"}), withMetadata(map[string]any{"name": "a", "creationTimestamp": nil}),
		},
		"unstructured creation of a template": {
			IgnoreCreationTimestamp,
			unstructuredOf(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{}}}}),
			unstructuredOf(map[string]any{
				"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"creationTimestamp": nil}}},
			}),
		},
		"resource version": {
			IgnoreResourceVersion,
			withMeta(metav1.ObjectMeta{ResourceVersion: "999"}), withMeta(metav1.ObjectMeta{ResourceVersion: "1000"}),
		},
		"unstructured resource version": {
			IgnoreResourceVersion,
			withMetadata(map[string]any{"resourceVersion": "999"}), withMetadata(map[string]any{"resourceVersion": "1000"}),
		},
		"a label selector that selects everything": {
			NormalizeLabelSelector,
			tracker.Reference{},
			tracker.Reference{Selector: labels.Everything()},
		},
		"label selectors made in different ways": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: labels.ValidatedSetSelector{"a": "1", "b": "2"}},
			tracker.Reference{Selector: parsedLabels("b=2,a=1")},
		},
		"a field selector that selects everything": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{},
			struct{ Fields fields.Selector }{fields.Everything()},
		},
		"field selectors made in different ways": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "1")},
			struct{ Fields fields.Selector }{fields.AndSelectors(fields.ParseSelectorOrDie("a=1"))},
		},
		"apply configurations of different Go types": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns").WithData(map[string]string{"k": "v"})},
			ApplyRef{ApplyConfiguration: client.ApplyConfigurationFromUnstructured(unstructuredOf(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
					"name": "a", "namespace": "ns",
				}, "data": map[string]any{"k": "v"},
			}))},
		},
		"no apply configuration": {
			NormalizeApplyConfiguration,
			ApplyRef{},
			ApplyRef{ApplyConfiguration: (*corev1ac.ConfigMapApplyConfiguration)(nil)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reflect.DeepEqual(tt.a, tt.b) {
				t.Fatal("there is nothing to ignore")
			}
			if diff := cmp.Diff(tt.a, tt.b, tt.option, reconcilers.IgnoreAllUnexported); diff != "" {
				t.Errorf("difference:\n%s", diff)
			}
			if diff := cmp.Diff(tt.b, tt.a, tt.option, reconcilers.IgnoreAllUnexported); diff != "" {
				t.Errorf("difference the other way round:\n%s", diff)
			}
		})
	}
}

// Each option leaves all else alone.
func TestNotIgnored(t *testing.T) {
	tests := map[string]struct {
		option cmp.Option
		a, b   any
	}{
		"reason of a condition": {
			IgnoreLastTransitionTime,
			withCondition(metav1.Condition{
				Reason: "A", LastTransitionTime: now,
			}), withCondition(metav1.Condition{Reason: "B", LastTransitionTime: now}),
		},
		"reason of an unstructured condition": {
			IgnoreLastTransitionTime,
			withUnstructuredCondition(map[string]any{"reason": "A"}), withUnstructuredCondition(map[string]any{"reason": "B"}),
		},
		"data that has a key of that name": {
			IgnoreLastTransitionTime,
			map[string]string{"lastTransitionTime": "A"},
			map[string]string{"lastTransitionTime": "B"},
		},
		"unstructured kind": {
			IgnoreTypeMeta,
			unstructuredOf(map[string]any{"kind": "A"}), unstructuredOf(map[string]any{"kind": "B"}),
		},
		"unstructured API version": {
			IgnoreTypeMeta,
			unstructuredOf(map[string]any{"apiVersion": "a/v1"}), unstructuredOf(map[string]any{"apiVersion": "a/v2"}),
		},
		"kind of a reference": {
			IgnoreTypeMeta,
			corev1.ObjectReference{Kind: "A"},
			corev1.ObjectReference{Kind: "B"},
		},
		"deletion": {
			IgnoreCreationTimestamp,
			withMeta(metav1.ObjectMeta{}), withMeta(metav1.ObjectMeta{DeletionTimestamp: &now}),
		},
		"creation, elsewhere": {
			IgnoreCreationTimestamp,
			unstructuredOf(map[string]any{"spec": map[string]any{"creationTimestamp": "A"}}),
			unstructuredOf(map[string]any{"spec": map[string]any{"creationTimestamp": "B"}}),
		},
		"creation of a type of its own": {
			IgnoreCreationTimestamp,
			struct{ CreationTimestamp string }{"A"},
			struct{ CreationTimestamp string }{"B"},
		},
		"metadata of items": {
			IgnoreResourceVersion,
			withMetadata(map[string]any{
				"resourceVersion": "1", "name": "a",
			}), withMetadata(map[string]any{"resourceVersion": "1", "name": "b"}),
		},
		"resource version of a list": {
			IgnoreResourceVersion,
			corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
			corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "2"}},
		},
		"a label selector that selects nothing": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: labels.Everything()},
			tracker.Reference{Selector: labels.Nothing()},
		},
		"label selectors": {
			NormalizeLabelSelector,
			tracker.Reference{Selector: parsedLabels("a=1")},
			tracker.Reference{Selector: parsedLabels("a!=1")},
		},
		"a field selector that selects nothing": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.Everything()},
			struct{ Fields fields.Selector }{fields.Nothing()},
		},
		"field selectors": {
			NormalizeFieldSelector,
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "1")},
			struct{ Fields fields.Selector }{fields.OneTermEqualSelector("a", "2")},
		},
		"apply configurations": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns")},
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("b", "ns")},
		},
		"an apply configuration and none": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: corev1ac.ConfigMap("a", "ns")},
			ApplyRef{},
		},
		"large numbers in apply configurations": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: numbered{Number: 1<<60 + 1}},
			ApplyRef{ApplyConfiguration: numbered{Number: 1 << 60}},
		},
		"an apply configuration that cannot be encoded": {
			NormalizeApplyConfiguration,
			ApplyRef{ApplyConfiguration: numbered{Err: errBroken}},
			ApplyRef{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.a, tt.b, tt.option); diff == "" {
				t.Error("no difference")
			}
		})
	}
}

func parsedLabels(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}

var errBroken = errors.New("broken on purpose")

// numbered is an apply configuration with a number, unless it fails.
type numbered struct {
	Number int64
	Err    error
}

var _ runtime.ApplyConfiguration = numbered{}

func (numbered) IsApplyConfiguration() {}

func (n numbered) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"number":%d}`, n.Number), n.Err
}
