// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi/kinds"
)

const websites = `
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: websites, singular: website, kind: Website, listKind: WebsiteList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        x-kubernetes-validations:
        - rule: self.metadata.name != "forbidden"
          message: is forbidden
        properties:
          spec:
            type: object
            required: [image]
            x-kubernetes-validations:
            - rule: self.replicas <= self.limit
              message: replicas must not exceed the limit
            properties:
              image: {type: string, minLength: 1}
              class:
                type: string
                enum: [small, big]
                x-kubernetes-validations:
                - rule: self == oldSelf
                  message: class is immutable
              replicas: {type: integer, default: 1, minimum: 0}
              limit: {type: integer, default: 10}
              port: {x-kubernetes-int-or-string: true}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              hosts: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              phase: {type: string, enum: [Ready, Failed]}
`

func definition(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func content(t testing.TB, text string) map[string]any {
	t.Helper()
	u := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	u["apiVersion"], u["kind"] = "example.com/v1", "Website"
	return (&unstructured.Unstructured{Object: jsonNumbers(u)}).Object
}

// jsonNumbers converts whole numbers as a decoder does.
func jsonNumbers(u map[string]any) map[string]any {
	for key, value := range u {
		switch v := value.(type) {
		case map[string]any:
			jsonNumbers(v)
		case float64:
			u[key] = int64(v)
		}
	}
	return u
}

// website is the Go type of websites. It lacks the extra field and does not omit an empty class.
type website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	Spec   websiteSpec   `json:"spec,omitzero"`
	Status websiteStatus `json:"status,omitzero"`
}

type websiteSpec struct {
	Image    string   `json:"image"`
	Class    string   `json:"class,omitempty"`
	Replicas *int32   `json:"replicas,omitempty"`
	Limit    int32    `json:"limit,omitempty"`
	Unknown  string   `json:"unknown,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
}

type websiteStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Phase    string `json:"phase,omitempty"`
}

func (w *website) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	if w.Spec.Replicas != nil {
		c.Spec.Replicas = new(*w.Spec.Replicas)
	}
	c.Spec.Hosts = append([]string(nil), w.Spec.Hosts...)
	return &c
}

// websiteKinds returns the kind with and without the Go type in the scheme.
func websiteKinds(t testing.TB) (typed, untyped *kinds.Kind) {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	scheme := runtime.NewScheme()
	for i, k := range []**kinds.Kind{&untyped, &typed} {
		if i == 1 {
			scheme.AddKnownTypeWithName(gvk, &website{})
		}
		registry, err := kinds.NewRegistry(scheme, definition(t, websites))
		if err != nil {
			t.Fatal(err)
		}
		*k, _ = registry.For(gvk)
	}
	return typed, untyped
}

func TestSchemaDefaultsAndPruning(t *testing.T) {
	_, k := websiteKinds(t)
	for _, c := range []struct{ name, given, want string }{
		{
			"defaults", `{metadata: {name: a}, spec: {image: x}}`,
			`{metadata: {name: a}, spec: {image: x, replicas: 1, limit: 10}}`,
		},
		{"no default without the parent", `{metadata: {name: a}}`, `{metadata: {name: a}}`},
		{
			"null is absent", `{metadata: {name: a}, spec: {image: null, replicas: null}}`,
			`{metadata: {name: a}, spec: {replicas: 1, limit: 10}}`,
		},
		{
			"unknown fields", `{metadata: {name: a, unknown: 1}, unknown: 1, spec: {unknown: 1, replicas: 2, limit: 3}}`,
			`{metadata: {name: a}, spec: {replicas: 2, limit: 3}}`,
		},
		{
			"preserved fields", `{metadata: {name: a}, spec: {replicas: 2, limit: 3, extra: {a: {b: c}}}}`,
			`{metadata: {name: a}, spec: {replicas: 2, limit: 3, extra: {a: {b: c}}}}`,
		},
		{
			"embedded metadata",
			`{metadata: {name: a}, spec: {replicas: 2, limit: 3, template: {apiVersion: v1, kind: Pod, metadata: {name: x, y: z}, spec: {a: b}}}}`,
			`{metadata: {name: a}, spec: {replicas: 2, limit: 3, template: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {a: b}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: content(t, c.given)}
			if err := k.Default(u); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(t, c.want), u.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaDefaultsOfAGoType(t *testing.T) {
	k, _ := websiteKinds(t)
	for range 2 { // the second result is cached
		obj := &website{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}},
			Spec:       websiteSpec{Image: "x", Unknown: "z"},
		}
		if err := k.Default(obj); err != nil {
			t.Fatal(err)
		}
		want := &website{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}},
			Spec:       websiteSpec{Image: "x", Replicas: new(int32(1)), Limit: 10},
		}
		if diff := cmp.Diff(want, obj); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		*obj.Spec.Replicas = 5 // belongs to the caller
	}
}

func TestSchemaValidation(t *testing.T) {
	typed, untyped := websiteKinds(t)
	replicas := func(n int32) *website {
		return &website{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "1"},
			Spec:       websiteSpec{Image: "x", Class: "small", Replicas: &n, Limit: 10},
		}
	}
	changed := func(change func(*website)) *website {
		w := replicas(1)
		change(w)
		return w
	}
	for _, c := range []struct {
		name     string
		obj, old client.Object
		status   bool
		want     string
	}{
		{"good", replicas(1), nil, false, ""},
		{
			"bad type", &unstructured.Unstructured{
				Object: content(t, `{metadata: {name: a, namespace: default}, spec: {image: x, replicas: many}}`),
			}, nil, false,
			`[spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", ` +
				`.spec.replicas: Invalid value: 0: .spec.replicas accessor error: many is of the type string, expected int64, ` +
				`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`,
		},
		{
			"required", &unstructured.Unstructured{Object: content(t, `{metadata: {name: a, namespace: default}}`)}, nil, false,
			"spec: Required value",
		},
		{
			"minimum", replicas(-1), nil, false,
			"spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
		},
		{"rule", replicas(11), nil, false, "spec: Invalid value: replicas must not exceed the limit"},
		{"rule about the name", changed(func(w *website) { w.Name = "forbidden" }), nil, false, "is forbidden"},
		{
			"set", changed(func(w *website) { w.Spec.Hosts = []string{"a", "a"} }), nil, false,
			`spec.hosts[1]: Duplicate value: "a"`,
		},
		{
			"enum", changed(func(w *website) { w.Spec.Class = "huge" }), nil, false,
			`spec.class: Unsupported value: "huge": supported values: "small", "big"`,
		},
		{"transition", changed(func(w *website) { w.Spec.Class = "big" }), replicas(1), false, "class is immutable"},
		{"no transition", replicas(2), replicas(1), false, ""},
		{
			"what was wrong may stay", changed(func(w *website) { w.Spec.Class = "huge"; w.Spec.Limit = 11 }),
			changed(func(w *website) { w.Spec.Class = "huge" }), false, "",
		},
		{
			"status", changed(func(w *website) { w.Status.Phase = "Bad" }), replicas(1), true,
			`status.phase: Unsupported value: "Bad"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := typed
			if _, ok := c.obj.(*unstructured.Unstructured); ok {
				k = untyped
			}
			for _, memory := range []string{"computed", "remembered"} {
				errs := k.Validate(c.obj)
				switch {
				case c.status:
					errs = k.ValidateStatusUpdate(c.obj, c.old)
				case c.old != nil:
					errs = k.ValidateUpdate(c.obj, c.old)
				}
				got := ""
				if err := errs.ToAggregate(); err != nil {
					got = err.Error()
				}
				if !containsOrBothEmpty(got, c.want) {
					t.Errorf("%s: %q, want %q", memory, got, c.want)
				}
			}
		})
	}
}

func containsOrBothEmpty(text, part string) bool {
	return (text == "") == (part == "") && strings.Contains(text, part)
}

func TestDefinitionsThatCannotBeServed(t *testing.T) {
	bad := strings.ReplaceAll(websites, "port: {x-kubernetes-int-or-string: true}", "port: {default: x, type: integer}")
	_, err := kinds.NewRegistry(runtime.NewScheme(), definition(t, bad))
	if err == nil || !strings.Contains(err.Error(), "websites.example.com") || !strings.Contains(err.Error(), "port") {
		t.Errorf("error %v, want one that names the definition and the field", err)
	}
}

func BenchmarkSchema(b *testing.B) {
	k, _ := websiteKinds(b)
	obj := &website{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "1"},
		Spec:       websiteSpec{Image: "x", Class: "small", Replicas: new(int32(1)), Limit: 10},
	}
	b.Run("Default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := k.Default(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ValidateUpdate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := k.ValidateUpdate(obj, obj); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
}
