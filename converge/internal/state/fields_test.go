// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

const gadgetsDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port]
                  properties: {port: {type: integer}, protocol: {type: string, default: TCP}, name: {type: string}}
              hosts: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              args: {type: array, items: {type: string}}
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    observedGeneration: {type: integer}
                    lastTransitionTime: {type: string, nullable: true}
`

var gadgetsKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

// gadgets returns the reader of a scheme with a custom kind.
func gadgets(t *testing.T) Reader {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(gadgetsDefinition), crd); err != nil {
		t.Fatal(err)
	}
	registry, err := kinds.NewRegistry(scheme.Scheme, crd)
	if err != nil {
		t.Fatal(err)
	}
	return Reader{Registry: registry, Applier: apply.New(registry)}
}

// TestKindsOfTheSameName compares objects of the same name, of two groups with a kind of the same name.
func TestKindsOfTheSameName(t *testing.T) {
	p := gadgets(t)
	state := func(one, other string) *Snapshot {
		s := &Snapshot{}
		for _, of := range [][2]string{{"", one}, {"serving.example.com", other}} {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": of[1]}}}
			obj.SetNamespace("default")
			obj.SetName("a")
			obj.SetUID(types.UID("uid" + of[0]))
			s.Kinds = append(s.Kinds, schema.GroupVersionKind{Group: of[0], Version: "v1", Kind: "Service"})
			s.Objects = append(s.Objects, []client.Object{obj})
		}
		return s
	}
	want := []Difference{
		{
			Name: "Service default/a of serving.example.com", Cause: finding.CauseDifferent,
			Lines: []string{`Service default/a of serving.example.com: spec.value is "3", want "2"`},
		},
	}
	got := p.Differences(state("1", "2"), state("1", "3"), nil)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Difference{})); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestDifferencesOfLists compares lists in another order.
func TestDifferencesOfLists(t *testing.T) {
	p := gadgets(t)
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	for name, c := range map[string]struct {
		kind schema.GroupVersionKind
		// content of the objects, without their metadata
		want, got string
		lines     []string
	}{
		"containers": {
			pod, `{spec: {containers: [{name: a, image: x}, {name: b, image: v}]}}`,
			`{spec: {containers: [{name: b, image: v}, {name: a, image: x}]}}`, nil,
		},
		"an image of a container": {
			pod, `{spec: {containers: [{name: a, image: x}, {name: b, image: v}]}}`,
			`{spec: {containers: [{name: b, image: z}, {name: a, image: x}]}}`,
			[]string{`Pod default/a: spec.containers[name=b].image is "z", want "v"`},
		},
		"the environment": {
			pod, `{spec: {containers: [{name: a, env: [{name: A, value: "1"}, {name: B, value: "2"}]}]}}`,
			`{spec: {containers: [{name: a, env: [{name: B, value: "2"}]}]}}`,
			[]string{
				`Pod default/a: spec.containers[name=a].env[name=A].name is missing, want "A"`,
				`Pod default/a: spec.containers[name=a].env[name=A].value is missing, want "1"`,
			},
		},
		"the arguments of a container are atomic": {
			pod, `{spec: {containers: [{name: a, args: [x, v]}]}}`, `{spec: {containers: [{name: a, args: [v, x]}]}}`,
			[]string{
				`Pod default/a: spec.containers[name=a].args[#0] is "v", want "x"`,
				`Pod default/a: spec.containers[name=a].args[#1] is "x", want "v"`,
			},
		},
		"a map with two keys": {
			gadgetsKind, `{spec: {ports: [{port: 1, protocol: TCP, name: x}, {port: 1, protocol: UDP, name: v}]}}`,
			`{spec: {ports: [{port: 1, protocol: UDP, name: z}, {port: 1, protocol: TCP, name: x}]}}`,
			[]string{`Gadget default/a: spec.ports[port=1,protocol=UDP].name is "z", want "v"`},
		},
		"a set": {
			gadgetsKind, `{spec: {hosts: [x, v]}}`, `{spec: {hosts: [z, v, x]}}`,
			[]string{`Gadget default/a: spec.hosts[z] should not be set, got "z"`},
		},
		"a list of a custom kind is atomic by default": {
			gadgetsKind, `{spec: {args: [x]}}`, `{spec: {args: [v]}}`,
			[]string{`Gadget default/a: spec.args[#0] is "v", want "x"`},
		},
		"conditions without a type of list": {
			gadgetsKind,
			`{status: {conditions: [{type: A, status: "True", observedGeneration: 1}, {type: B, status: "True"}]}}`,
			`{status: {conditions: [{type: B, status: "False"}, {type: A, status: "True", observedGeneration: 2}]}}`,
			[]string{`Gadget default/a: status.conditions[type=B].status is "False", want "True"`},
		},
		"conditions of the same type": {
			gadgetsKind, `{status: {conditions: [{type: A, status: "True"}, {type: A, status: "False"}]}}`,
			`{status: {conditions: [{type: A, status: "True"}, {type: A, status: "True"}]}}`,
			[]string{`Gadget default/a: status.conditions[#1].status is "True", want "False"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, d := range p.Differences(stateOf(t, c.kind, c.want), stateOf(t, c.kind, c.got), nil) {
				lines = append(lines, d.Lines...)
			}
			if diff := cmp.Diff(c.lines, lines); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func stateOf(t *testing.T, kind schema.GroupVersionKind, content string) *Snapshot {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(content), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetNamespace("default")
	obj.SetName("a")
	obj.SetUID("uid")
	return &Snapshot{Kinds: []schema.GroupVersionKind{kind}, Objects: [][]client.Object{{obj}}}
}

// TestMasksOfLists masks a field of all items of a list, or of one.
func TestMasksOfLists(t *testing.T) {
	for field, want := range map[string]int{
		"status.conditions": 0, "status.conditions.message": 0, "status.conditions[type=A].message": 1,
		"status.conditions[type=A]": 1, "status.conditions.mess": 2,
	} {
		p := gadgets(t)
		p.Masks = []Mask{{Kind: gadgetsKind, Field: field}}
		found := p.Differences(
			stateOf(t, gadgetsKind, conditionsOf("x")), stateOf(t, gadgetsKind, conditionsOf("v")), nil,
		)
		lines := 0
		for _, d := range found {
			lines += len(d.Lines)
		}
		if lines != want {
			t.Errorf("mask %s: %d lines, want %d: %v", field, lines, want, found)
		}
	}
}

func conditionsOf(message string) string {
	return `{status: {conditions: [{type: A, message: ` + message + `}, {type: B, message: ` + message + `}]}}`
}

func TestGeneratedNames_replace(t *testing.T) {
	var names GeneratedNames
	names.Learn("a-x7k2p", "a-")
	names.Learn("a-x7k2p-9qwer", "a-x7k2p-")
	names.Learn("disk-1", "disk-")
	names.Learn("v1", "v") // too short
	for text, want := range map[string]string{
		"a-x7k2p":               "a-*",
		"a-x7k2p-config":        "a-*-config",
		"backup-of-a-x7k2p":     "backup-of-a-*",
		"default/a-x7k2p":       "default/a-*",
		"a-x7k2p.default.svc:8": "a-*.default.svc:8",
		"a-x7k2p,a-x7k2p":       "a-*,a-*",
		"a-x7k2p-9qwer":         "a-*-*",
		"a-x7k2p-9qwerty":       "a-*-9qwerty",
		"aa-x7k2p":              "aa-x7k2p",
		"a-x7k2p1":              "a-x7k2p1",
		"disk-1":                "disk-*",
		"disk-12":               "disk-12",
		"delete disk-1":         "delete disk-*",
		"v1":                    "v1",
		"":                      "",
	} {
		if got := names.Replace(text); got != want {
			t.Errorf("%q is replaced by %q, want %q", text, got, want)
		}
	}
}

// TestNamesFromGeneratedNames replaces generated names in keys and values. Two names of one prefix have a number, in
// the order of their content.
func TestNamesFromGeneratedNames(t *testing.T) {
	var names GeneratedNames
	names.Learn("a-x7k2p", "a-")
	names.Learn("a-4w5tz", "a-")
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a-x7k2p-config", Labels: map[string]string{"of": "a-x7k2p"},
			Annotations: map[string]string{"example.com/a-x7k2p": "2", "example.com/a-4w5tz": "1"},
		},
		Data: map[string]string{"a-x7k2p.json": `{"name":"a-x7k2p"}`, "other": "a-x7k2pq"},
	}
	want := map[string]string{
		"metadata.labels[of]":                       `"a-*"`,
		"metadata.annotations[example.com/a-*]":     `"1"`,
		"metadata.annotations[example.com/a-* (2)]": `"2"`,
		"data[a-*.json]":                            `"{\"name\":\"a-*\"}"`,
		"data.other":                                `"a-x7k2pq"`,
	}
	p := gadgets(t)
	s := &Snapshot{Generated: names}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	got := map[string]string{}
	for path, field := range p.FieldsOf(kind, configMap, s.replacer()) {
		got[path] = field.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got := names.Thing(kind, configMap).String(); got != "ConfigMap a-*-config" {
		t.Errorf("the object is %s", got)
	}
}

func TestCutRandom(t *testing.T) {
	for name, want := range map[string]string{
		"web-x7f2k": "web-", "web-https": "web-", "web-nginx": "", "webx7f2k": "", "web-x7f2": "", "x7f2k": "", "-x7f2k": "-",
	} {
		if prefix, _, _ := CutRandom(name); prefix != want {
			t.Errorf("%s: got %q, want %q", name, prefix, want)
		}
	}
}
