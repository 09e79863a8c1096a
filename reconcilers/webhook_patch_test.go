// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// mutated sends an object to a webhook that changes it. It returns the patched object and the operations of the patch.
func mutated[T client.Object](t *testing.T, object string, change func(T)) (after string, operations []string) {
	t.Helper()
	r := &reconcilers.AdmissionWebhookAdapter[T]{Reconciler: &reconcilers.SyncReconciler[T]{
		Sync: func(_ context.Context, resource T) error { change(resource); return nil },
	}}
	resp := r.Handle(context.Background(), admissionRequest(admissionv1.Create, object))
	if !resp.Allowed {
		t.Fatalf("denied: %v", resp.Result)
	}
	data, err := json.Marshal(resp.Patches)
	wantErr(t, nil, err)
	patch, err := evanphx.DecodePatch(data)
	wantErr(t, nil, err)
	patched, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("apply %s: %v", data, err)
	}
	for _, operation := range resp.Patches {
		operations = append(operations, operation.Operation+" "+operation.Path)
	}
	return string(patched), operations
}

// document decodes JSON and keeps all digits of numbers.
func document(t *testing.T, text string) (doc any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.UseNumber()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return doc
}

func TestAdmissionWebhookAdapter_KeepsUnknownFields(t *testing.T) {
	const (
		head = `{"apiVersion":"v1","kind":"Pod","future":{"top":[1,{"level":true}]},"metadata":{"name":"test","creationTimestamp":null,"future":1},`
		a    = `{"name":"a","image":"a:1","future":{"of":"a"},"resources":{}}`
		b    = `{"name":"b","image":"b:1","future":{"of":"b"},"resources":{}}`
		pod  = head + `"spec":{"future":"spec","containers":[` + a + `,` + b + `]}}`
	)
	newImage := `{"name":"a","image":"a:2","future":{"of":"a"},"resources":{}}`
	c := `{"name":"c","resources":{}}`
	withContainers := func(list string) string { return head + `"spec":{"future":"spec","containers":[` + list + `]}}` }
	withTolerations := func(list string) string { return head + `"spec":{"tolerations":[` + list + `]}}` }
	for name, tc := range map[string]struct {
		reason     string
		object     string
		change     func(*corev1.Pod)
		want       string
		operations []string
	}{
		"elsewhere": {
			reason: "a change affects only its own field", object: pod,
			change:     func(pod *corev1.Pod) { pod.Spec.NodeName = "node" },
			want:       head + `"spec":{"future":"spec","nodeName":"node","containers":[` + a + `,` + b + `]}}`,
			operations: []string{"add /spec/nodeName"},
		},
		"beside": {
			reason: "a change in a list item affects only its own field", object: pod,
			change: func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "a:2" },
			want:   withContainers(newImage + `,` + b), operations: []string{"replace /spec/containers/0/image"},
		},
		"appended": {
			reason: "a new item does not affect other items", object: pod,
			change: func(pod *corev1.Pod) { pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "c"}) },
			want:   withContainers(a + `,` + b + `,` + c),
		},
		"prepended": {
			reason: "items are matched by value, not by index", object: pod,
			change: func(pod *corev1.Pod) {
				pod.Spec.Containers = append([]corev1.Container{{Name: "c"}}, pod.Spec.Containers...)
			},
			want: withContainers(c + `,` + a + `,` + b),
		},
		"prepended and changed": {
			reason: "a changed item is matched by name", object: pod,
			change: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Image = "a:2"
				pod.Spec.Containers = append([]corev1.Container{{Name: "c"}}, pod.Spec.Containers...)
			},
			want: withContainers(c + `,` + newImage + `,` + b),
		},
		"reversed and changed": {
			reason: "a changed item is matched by name", object: pod,
			change: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Image = "a:2"
				slices.Reverse(pod.Spec.Containers)
			},
			want: withContainers(b + `,` + newImage),
		},
		"replaced": {
			reason: "an item with a different name is a different item", object: pod,
			change: func(pod *corev1.Pod) { pod.Spec.Containers[0] = corev1.Container{Name: "c"} },
			want:   withContainers(c + `,` + b),
		},
		"removed": {
			reason: "a removed item is removed with its unknown fields", object: pod,
			change: func(pod *corev1.Pod) { pod.Spec.Containers = pod.Spec.Containers[1:] },
			want:   withContainers(b),
		},
		"all removed": {
			reason: "a removed list is removed with its unknown fields", object: pod,
			change: func(pod *corev1.Pod) { pod.Spec.Containers = nil },
			want:   head + `"spec":{"future":"spec","containers":null}}`, operations: []string{"replace /spec/containers"},
		},
		"item without a name": {
			reason: "in a list of the same length, items are matched by index", object: withTolerations(
				`{"key":"a","future":1},{"key":"b","future":2}`,
			),
			change:     func(pod *corev1.Pod) { pod.Spec.Tolerations[1].Key = "c" },
			want:       withTolerations(`{"key":"a","future":1},{"key":"c","future":2}`),
			operations: []string{"replace /spec/tolerations/1/key"},
		},
		"same items": {
			reason: "equal items are matched by index", object: withTolerations(
				`{"key":"a","future":1},{"key":"a","future":2}`,
			),
			change: func(pod *corev1.Pod) {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "a"}, corev1.Toleration{Key: "b"})
			},
			want: withTolerations(`{"key":"a","future":1},{"key":"a","future":2},{"key":"a"},{"key":"b"}`),
		},
		"one of two same items replaced": {
			reason: "an item that keeps its index is the same item", object: withTolerations(
				`{"key":"a","future":1},{"key":"a","future":2}`,
			),
			change: func(pod *corev1.Pod) { pod.Spec.Tolerations[0] = corev1.Toleration{Key: "b"} },
			want:   withTolerations(`{"key":"b","future":1},{"key":"a","future":2}`),
		},
		"another list": {
			reason: "in a list of a different length, the index is not used", object: withTolerations(
				`{"key":"a","future":1},{"key":"b","future":2}`,
			),
			change: func(pod *corev1.Pod) { pod.Spec.Tolerations = []corev1.Toleration{{Key: "c"}} },
			want:   withTolerations(`{"key":"c"}`),
		},
		"swapped": {
			reason: "an unchanged item keeps its unknown fields", object: withTolerations(
				`{"key":"a","future":1},{"key":"b","future":2}`,
			),
			change: func(pod *corev1.Pod) { slices.Reverse(pod.Spec.Tolerations) },
			want:   withTolerations(`{"key":"b","future":2},{"key":"a","future":1}`),
		},
		"moved and changed": {
			reason: "an item with a better match is not used", object: withTolerations(
				`{"key":"a","future":1},{"key":"b","future":2}`,
			),
			change: func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Key: "new"}, {Key: "a"}}
			},
			want: withTolerations(`{"key":"new"},{"key":"a","future":1}`),
		},
		"scalars": {
			reason: "scalars have no unknown fields",
			object: head + `"spec":{"containers":[{"name":"a","future":1,"resources":{},"args":["x","y"]}]}}`,
			change: func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = []string{"y", "z", "z"} },
			want:   head + `"spec":{"containers":[{"name":"a","future":1,"resources":{},"args":["y","z","z"]}]}}`,
		},
		"keys of maps": {
			reason:     "all keys of a map are known",
			object:     `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":null}}`,
			change:     func(pod *corev1.Pod) { delete(pod.Labels, "a"); pod.Labels["c"] = "3" },
			want:       `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"b":"2","c":"3"}},"spec":{"containers":null}}`,
			operations: []string{"add /metadata/labels/c", "remove /metadata/labels/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, operations := mutated(t, tc.object, tc.change)
			equal(t, "object, for "+tc.reason, document(t, tc.want), document(t, after))
			if tc.operations != nil {
				equal(t, "operations", tc.operations, slices.Sorted(slices.Values(operations)))
			}
		})
	}
}

func TestAdmissionWebhookAdapter_DoesNotAddZeroValues(t *testing.T) {
	// The Go type always encodes spec.containers, status and, for each container, resources.
	for name, tc := range map[string]struct {
		object string
		change func(*corev1.Pod)
		want   string
	}{
		"beside": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},"spec":{"containers":[{"name":"a"}]}}`,
			func(pod *corev1.Pod) { pod.Spec.NodeName = "node" },
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},"spec":{"containers":[{"name":"a"}],"nodeName":"node"}}`,
		},
		"in the same item": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},"spec":{"containers":[{"name":"a"}]}}`,
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "a:1" },
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},"spec":{"containers":[{"name":"a","image":"a:1"}]}}`,
		},
		"in a missing struct": {
			`{"apiVersion":"v1","kind":"Pod"}`,
			func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Labels = "node", map[string]string{"a": "b"} },
			`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"node"}}`,
		},
		"null": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test","creationTimestamp":null,"labels":null},"spec":{"containers":null,"volumes":null}}`,
			func(pod *corev1.Pod) { pod.Annotations = map[string]string{"a": "b"} },
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test","creationTimestamp":null,"labels":null,"annotations":{"a":"b"}},"spec":{"containers":null,"volumes":null}}`,
		},
		"in place of null": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":null},"spec":{"containers":null,"volumes":[]}}`,
			func(pod *corev1.Pod) {
				pod.Labels = map[string]string{"a": "b"}
				pod.Spec.Volumes = []corev1.Volume{{Name: "v"}}
			},
			`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"containers":null,"volumes":[{"name":"v"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := mutated(t, tc.object, tc.change)
			equal(t, "object", document(t, tc.want), document(t, after))
		})
	}
}

// gadget has fields of all types that need special handling in JSON.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Detail  gadgetDetail       `json:"detail,omitzero"`
	Options *gadgetDetail      `json:"options,omitempty"`
	Port    intstr.IntOrString `json:"port,omitempty"`
}

type gadgetDetail struct {
	Color string `json:"color,omitempty"`
	Big   int64  `json:"big,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	if g.Options != nil {
		c.Options = new(*g.Options)
	}
	return &c
}

func TestAdmissionWebhookAdapter_PatchValues(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object string
		change         func(*gadget)
		want           string
		operations     []string
	}{
		"unknown in a zero struct": {
			reason: "a struct that the Go type omits when it is zero may contain unknown fields",
			object: `{"detail":{"future":1}}`,
			change: func(g *gadget) { g.Detail.Color = "blue" },
			want:   `{"detail":{"future":1,"color":"blue"}}`, operations: []string{"add /detail/color"},
		},
		"pointer": {
			reason: "a removed struct is removed with its unknown fields", object: `{"options":{"future":1,"color":"blue"}}`,
			change: func(g *gadget) { g.Options = nil },
			want:   `{}`, operations: []string{"remove /options"},
		},
		"large numbers": {
			reason: "known and unknown fields keep all digits",
			object: `{"future":9007199254740993,"spelled":1.0,"detail":{"big":9007199254740993}}`,
			change: func(g *gadget) { g.Detail.Big += 2 },
			want:   `{"future":9007199254740993,"spelled":1.0,"detail":{"big":9007199254740995}}`, operations: []string{
				"replace /detail/big",
			},
		},
		"another type": {
			reason: "a value may change its type", object: `{"port":80}`,
			change: func(g *gadget) { g.Port = intstr.FromString("http") },
			want:   `{"port":"http"}`, operations: []string{"replace /port"},
		},
		"paths": {
			reason: "keys are escaped", object: `{"metadata":{"labels":{"a/b~c":"1"}}}`,
			change: func(g *gadget) { g.Labels["a/b~c"] = "<2>" },
			want:   `{"metadata":{"labels":{"a/b~c":"<2>"}}}`, operations: []string{"replace /metadata/labels/a~1b~0c"},
		},
		"nothing in JSON": {
			reason: "a change without effect on the JSON is not a change", object: `{"metadata":{"name":"test"}}`,
			change: func(g *gadget) { g.Port = intstr.IntOrString{StrVal: "not used by the type"} },
			want:   `{"metadata":{"name":"test"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			after, operations := mutated(t, tc.object, tc.change)
			equal(t, "object, for "+tc.reason, document(t, tc.want), document(t, after))
			equal(t, "operations", tc.operations, operations)
		})
	}
}

func TestAdmissionWebhookAdapter_Unstructured(t *testing.T) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	// List items may have names of any type. The webhook must not panic.
	const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},"spec":{"list":[{"name":{}},{"name":[1]},{"name":"a","x":1},{"name":7}],"big":9007199254740993}}`
	reconciler := &reconcilers.SyncReconciler[*unstructured.Unstructured]{
		Sync: func(_ context.Context, u *unstructured.Unstructured) error {
			list := u.Object["spec"].(map[string]any)["list"].([]any)
			list[2].(map[string]any)["x"] = int64(2)
			u.Object["spec"].(map[string]any)["list"] = append(
				[]any{map[string]any{"name": map[string]any{"new": true}}}, list...,
			)
			return nil
		},
	}
	r := &reconcilers.AdmissionWebhookAdapter[*unstructured.Unstructured]{Type: kind, Reconciler: reconciler}
	resp := r.Handle(context.Background(), admissionRequest(admissionv1.Create, object))
	equal(t, "allowed", true, resp.Allowed)
	equal(t, "default name", "PodAdmissionWebhookAdapter", r.Name)
	data, err := json.Marshal(resp.Patches)
	wantErr(t, nil, err)
	patch, err := evanphx.DecodePatch(data)
	wantErr(t, nil, err)
	after, err := patch.Apply([]byte(object))
	wantErr(t, nil, err)
	equal(t, "object", document(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"test"},
		"spec":{"list":[{"name":{"new":true}},{"name":{}},{"name":[1]},{"name":"a","x":2},{"name":7}],"big":9007199254740993}}`), document(t, string(after)))
}

func TestAdmissionWebhookAdapter_PatchValuesHaveTheTypesOfDecodedJSON(t *testing.T) {
	const object = `{"metadata":{"name":"test"},"spec":{"containers":[{"name":"app"}]}}`
	want := []jsonpatch.Operation{
		{Operation: "add", Path: "/metadata/labels", Value: map[string]any{"bound": "true"}},
		{Operation: "add", Path: "/spec/activeDeadlineSeconds", Value: json.Number("9007199254740993")},
		{Operation: "add", Path: "/spec/containers/0/image", Value: "app:2"},
		{
			Operation: "add", Path: "/spec/containers/0/volumeMounts",
			Value: []any{map[string]any{"name": "binding", "mountPath": "/bindings"}},
		},
		{Operation: "add", Path: "/spec/volumes", Value: []any{map[string]any{
			"name": "binding", "projected": map[string]any{"sources": nil, "defaultMode": float64(420)},
		}}},
	}
	r := &reconcilers.AdmissionWebhookAdapter[*corev1.Pod]{Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{
		Sync: func(_ context.Context, pod *corev1.Pod) error {
			pod.Labels = map[string]string{"bound": "true"}
			pod.Spec.ActiveDeadlineSeconds = new(int64(9007199254740993)) // a float64 rounds it
			pod.Spec.Containers[0].Image = "app:2"
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "binding", MountPath: "/bindings"}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "binding", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420))},
			}}}
			return nil
		},
	}}
	for range 20 { // jsonpatch iterates over maps, so without sorting the order varies
		resp := r.Handle(context.Background(), admissionRequest(admissionv1.Create, object))
		equal(t, "patches", want, resp.Patches)
	}
}
