// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/engine/ownership"
)

// gadget is a custom resource with fields that are always part of the JSON form.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gadgetSpec   `json:"spec"`
	Status            gadgetStatus `json:"status"`
}

type gadgetSpec struct {
	Inlined `json:",inline"`
	Size    int                  `json:"size"`
	On      bool                 `json:"on"`
	Off     *bool                `json:"off,omitempty"`
	Limit   resource.Quantity    `json:"limit"`
	Port    intstr.IntOrString   `json:"port"`
	Since   metav1.Time          `json:"since"`
	List    []string             `json:"list"`
	Omitted []string             `json:"omitted,omitempty"`
	Labels  map[string]string    `json:"labels"`
	Nested  nested               `json:"nested"`
	Pointer *nested              `json:"pointer,omitempty"`
	Items   []nested             `json:"items,omitempty"`
	ByName  map[string]nested    `json:"byName,omitempty"`
	Raw     runtime.RawExtension `json:"raw"`
	Hidden  string               `json:"-"`
}

// Inlined has fields of the struct that embeds it.
type Inlined struct {
	Text string `json:"text"`
}

type nested struct {
	A string `json:"a"`
	B int    `json:"b"`
}

type gadgetStatus struct {
	Ready bool `json:"ready"`
}

func (g *gadget) DeepCopyObject() runtime.Object { panic("not used") }

func TestDocument(t *testing.T) {
	for name, tc := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"nothing": {&gadget{}, "{}"},
		"zero values that are set": {&gadget{Spec: gadgetSpec{
			Off: new(bool), List: []string{}, Omitted: []string{}, Labels: map[string]string{}, Pointer: &nested{},
		}}, `spec: {"off": false, list: [], labels: {}, pointer: {}}`},
		"items": {
			&gadget{Spec: gadgetSpec{Items: []nested{{}, {A: "a"}}, ByName: map[string]nested{"x": {}, "z": {B: 1}}}},
			"spec: {items: [{}, {a: a}], byName: {x: {}, z: {b: 1}}}",
		},
		"values with a form of their own": {&gadget{Spec: gadgetSpec{
			Inlined: Inlined{"t"}, Size: 1, On: true, Limit: resource.MustParse("1000m"), Port: intstr.FromString("http"),
			Raw: runtime.RawExtension{Raw: []byte(`{"a":0}`)},
		}}, `spec: {text: t, size: 1, "on": true, limit: "1", port: http, raw: {a: 0}}`},
		"metadata and status of the server": {&gadget{
			ObjectMeta: metav1.ObjectMeta{
				Name: "m", UID: "u", ResourceVersion: "1", Generation: 2, Labels: map[string]string{"a": ""},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, CreationTimestamp: metav1.Now(),
			}, Status: gadgetStatus{Ready: true},
		}, `metadata: {name: m, labels: {a: ""}}`},
		"a Deployment": {&appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web"}},
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				},
			}},
		}}, "spec: {replicas: 0, selector: {}, template: {" +
			"spec: {containers: [{name: web}], volumes: [{name: v, emptyDir: {}}]}}}"},
		"unstructured": {&unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"zero": int64(0), "null": nil, "list": []any{map[string]any{"null": nil}}},
			"status": map[string]any{"a": "b"},
		}}, "spec: {zero: 0, list: [{}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := ownership.Document(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(t, tc.want), roundTrip(t, document)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func content(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func roundTrip(t *testing.T, document map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return content(t, string(data))
}

func owned(t *testing.T, manager, fields string) metav1.ManagedFieldsEntry {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(data)),
	}
}

const portFields = `
f:spec:
  f:ports:
    'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}
    'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}}
`

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		desired, stored, owned string
		want                   []string
	}{
		"in sync": {
			"{apiVersion: v1, kind: X, metadata: {name: m, labels: {a: b}}, spec: {a: 1}}",
			"{metadata: {name: m, uid: u, labels: {a: b, c: d}}, spec: {a: 1, b: 2}}",
			"{f:metadata: {f:labels: {f:a: {}}}, f:spec: {f:a: {}}}", nil,
		},
		"only a name": {"{metadata: {name: m}}", "{metadata: {name: m}}", "{}", nil},
		"value":       {"{spec: {a: 1}}", "{spec: {a: 2}}", "{f:spec: {f:a: {}}}", []string{".spec.a other value"}},
		"not owned":   {"{spec: {a: 1}}", "{spec: {a: 1}}", "{}", []string{".spec not owned"}},
		"not desired": {"{spec: {}}", "{spec: {a: 1}}", "{f:spec: {f:a: {}}}", []string{".spec.a no longer desired"}},
		"a label that is not desired": {
			"{metadata: {name: m}}", "{metadata: {labels: {a: b}}}", "{f:metadata: {f:labels: {f:a: {}}}}",
			[]string{".metadata.labels no longer desired"},
		},
		"a value as a whole": {
			"{spec: {selector: {a: b}}}", "{spec: {selector: {a: b, c: d}}}", "{f:spec: {f:selector: {}}}",
			[]string{".spec.selector other value"},
		},
		"keys with a default": {
			"{spec: {ports: [{port: 53, protocol: UDP}, {port: 53, name: dns}]}}",
			"{spec: {ports: [{port: 53, protocol: UDP}, {port: 53, name: dns, protocol: TCP, extra: 1}]}}", portFields, nil,
		},
		"items in another order": {
			"{spec: {ports: [{port: 53, name: dns}, {port: 53, protocol: UDP}]}}",
			"{spec: {ports: [{port: 53, protocol: UDP}, {port: 53, name: dns, protocol: TCP}]}}", portFields,
			[]string{".spec.ports other order"},
		},
		"another item, and one less": {
			"{spec: {ports: [{port: 54}, {port: 53, protocol: UDP}]}}",
			"{spec: {ports: [{port: 53, protocol: UDP}, {port: 53, name: dns, protocol: TCP}]}}", portFields,
			[]string{".spec.ports[] not owned", ".spec.ports[port=53,protocol=TCP] no longer desired"},
		},
		"an own item that does not exist": {
			"{spec: {ports: [{port: 53, name: dns}, {port: 53, protocol: UDP}]}}",
			"{spec: {ports: [{port: 53, name: dns, protocol: TCP}]}}", portFields,
			[]string{".spec.ports[port=53,protocol=UDP] other value"},
		},
		"field of an item": {
			"{spec: {ports: [{port: 53, name: changed}, {port: 53, protocol: UDP, name: added}]}}",
			"{spec: {ports: [{port: 53, name: dns, protocol: TCP}, {port: 53, protocol: UDP}]}}", portFields,
			[]string{".spec.ports[port=53,protocol=TCP].name other value", ".spec.ports[port=53,protocol=UDP].name not owned"},
		},
		"a set": {
			"{metadata: {finalizers: [a, c]}}", "{metadata: {finalizers: [a, b]}}",
			`{f:metadata: {f:finalizers: {'v:"a"': {}, 'v:"b"': {}}}}`,
			[]string{".metadata.finalizers[] not owned", ".metadata.finalizers[b] no longer desired"},
		},
		"an empty list": {"{spec: {list: []}}", "{spec: {list: []}}", "{f:spec: {f:list: {}}}", nil},
		"another type": {
			"{spec: {a: text}}", "{spec: {a: {b: 1}}}", "{f:spec: {f:a: {f:b: {}}}}", []string{".spec.a other value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired, stored := content(t, tc.desired), content(t, tc.stored)
			c := ownership.Compare(desired, stored, ownership.FieldsOf(owned(t, "me", tc.owned)))
			var got []string
			for _, d := range c.Differences {
				got = append(got, d.Path+" "+string(d.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(content(t, tc.desired), desired) + cmp.Diff(content(t, tc.stored), stored); diff != "" {
				t.Errorf("arguments (-before +after):\n%s", diff)
			}
			if len(tc.want) > 0 && c.OnlyValues() && cmp.Equal(stored, c.Merged) {
				t.Error("the desired values are not merged")
			}
			if len(tc.want) == 0 {
				if diff := cmp.Diff(stored, c.Merged); diff != "" {
					t.Errorf("merged (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestResolve(t *testing.T) {
	desired := `{spec: {replicas: 1, same: 1, ports: [{port: 53, name: mine}, {port: 80}]}, metadata: {labels: {a: mine}}}`
	stored := content(t, `{spec: {replicas: 3, same: 1, ports: [{port: 53, protocol: TCP, name: theirs}]}, metadata: {labels: {a: theirs}}}`)
	others := []metav1.ManagedFieldsEntry{
		owned(t, "scaler", "{f:spec: {f:replicas: {}, f:same: {}}}"),
		owned(t, "editor", `{f:spec: {f:ports: {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:name": {}}}}}`),
		owned(t, "labeler", "{f:metadata: {f:labels: {.: {}, f:a: {}}}}"),
	}
	for name, tc := range map[string]struct{ giveWay, want string }{
		"keep all": {"", desired},
		"one":      {".spec.replicas", `{spec: {same: 1, ports: [{port: 53, name: mine}, {port: 80}]}, metadata: {labels: {a: mine}}}`},
		"all": {
			".", `{spec: {same: 1, ports: [{port: 53}, {port: 80}]}, metadata: {labels: {}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := content(t, desired)
			var asked []string
			kept := ownership.Resolve(before, stored, others, func(path string, owner metav1.ManagedFieldsEntry) bool {
				asked = append(asked, path+" of "+owner.Manager)
				return tc.giveWay == "" || !strings.HasPrefix(path, tc.giveWay)
			})
			if diff := cmp.Diff(content(t, tc.want), kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(content(t, desired), before); diff != "" {
				t.Errorf("argument (-before +after):\n%s", diff)
			}
			want := []string{
				".spec.replicas of scaler", ".spec.ports[port=53,protocol=TCP].name of editor", ".metadata.labels.a of labeler",
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsOf_Unreadable(t *testing.T) {
	for name, entry := range map[string]metav1.ManagedFieldsEntry{
		"none": {}, "no JSON": {FieldsV1: metav1.NewFieldsV1("{")},
	} {
		if fields := ownership.FieldsOf(entry); len(fields) > 0 {
			t.Errorf("%s: fields %v", name, fields)
		}
	}
}

// Which desired values did an apply not store, if it stored none?
func TestKept(t *testing.T) {
	const all = "{f:spec: {f:a: {}, f:b: {}, f:labels: {f:x: {}}, f:list: {}}}"
	for name, tc := range map[string]struct {
		desired, before, beforeOwned, after string
		want                                []string
	}{
		"everything is stored": {"{spec: {a: 1}}", "{spec: {a: 2}}", all, "{spec: {a: 1}}", nil},
		"the old value stays":  {"{spec: {a: 1}}", "{spec: {a: 2}}", all, "{spec: {a: 2}}", []string{"spec.a"}},
		"a new field is lost": {
			"{spec: {a: 1, b: 1}}", "{spec: {a: 1}}", "{f:spec: {f:a: {}}}", "{spec: {a: 1}}", []string{"spec.b"},
		},
		"a third value": {"{spec: {a: 1}}", "{spec: {a: 2}}", all, "{spec: {a: 3}}", nil},
		"one of two":    {"{spec: {a: 1, b: 1}}", "{spec: {a: 2, b: 2}}", all, "{spec: {a: 2, b: 1}}", nil},
		"only an owner": {"{spec: {a: 1}}", "{spec: {a: 1}}", "{}", "{spec: {a: 1}}", nil},
		"a list": {
			"{spec: {list: [1]}}", "{spec: {list: [2]}}", all, "{spec: {list: [2]}}", []string{"spec.list"},
		},
		"only a removal": {"{spec: {a: 1}}", "{spec: {a: 1, b: 1}}", all, "{spec: {a: 1, b: 1}}", nil},
		"the old value stays, and another field gets an owner": {
			"{spec: {a: 1, labels: {x: y}}}", "{spec: {a: 2, labels: {x: y, w: z}}}", "{}",
			"{spec: {a: 2, labels: {x: y, w: z}}}",
			[]string{"spec.a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			compare := func(stored, fields string) []ownership.Difference {
				owned := ownership.FieldsOf(owned(t, "me", fields))
				return ownership.Compare(content(t, tc.desired), content(t, stored), owned).Differences
			}
			got := ownership.Kept(compare(tc.before, tc.beforeOwned), compare(tc.after, all))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
