// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

const gauges = `
metadata: {name: gauges.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status:
            type: object
            required: [readings]
            properties: {readings: {type: array, items: {type: string}}}
            x-kubernetes-validations: [{rule: self.readings.size() > 0, message: must have readings}]
`

// Gauge is a custom kind whose Go type always has a status, with null for the field that its schema requires.
type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec  `json:"spec,omitempty"`
	Status            GaugeStatus `json:"status,omitempty"`
}

type GaugeStatus struct {
	Readings []string `json:"readings"`
}

func (g *Gauge) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Readings = slices.Clone(g.Status.Readings)
	return &copied
}

// gaugeWorld is a world with gauges and their schema.
func gaugeWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &world{TB: t, now: start}
	w.must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(widgets, &Gauge{})
	metav1.AddToGroupVersion(scheme, widgets)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.must(yaml.UnmarshalStrict([]byte(gauges), crd))
	registry, err := kinds.NewRegistry(scheme, crd)
	w.must(err)
	w.Server = memapi.New(memapi.Options{Registry: registry, Seed: 1})
	w.c = w.Client("tester")
	return w
}

// TestStatusIsDroppedBeforeValidation checks that only writes to the status validate it.
func TestStatusIsDroppedBeforeValidation(t *testing.T) {
	w := gaugeWorld(t)
	obj := &Gauge{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	w.create(obj)
	content := &unstructured.Unstructured{}
	content.SetGroupVersionKind(widgets.WithKind("Gauge"))
	status := func() any {
		w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), content))
		return content.Object["status"]
	}
	w.equal("status after the create", nil, status())

	obj.Spec.Size = 2
	w.must(w.c.Update(w.Context(), obj))
	content.Object["spec"] = map[string]any{"size": int64(3)}
	content.Object["status"] = map[string]any{"readings": "not a list"}
	content.SetLabels(map[string]string{"a": "b"})
	content.SetResourceVersion(obj.ResourceVersion)
	w.must(w.c.Update(w.Context(), content))
	w.equal("status after updates", nil, status())
	w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"spec":{"size":4}}`)))

	w.wantError(w.c.Status().Update(w.Context(), obj), 422, metav1.StatusReasonInvalid,
		`Gauge.example.org "a" is invalid: [status.readings: Required value`)
	obj.Status.Readings = []string{}
	w.wantError(w.c.Status().Update(w.Context(), obj), 422, metav1.StatusReasonInvalid,
		`Gauge.example.org "a" is invalid: status: Invalid value: must have readings`)
	obj.Status.Readings = []string{"1"}
	w.must(w.c.Status().Update(w.Context(), obj))
	want := any(map[string]any{"readings": []any{"1"}})
	w.equal("status after its update", want, status())

	obj.Status.Readings = nil
	obj.Spec.Size = 5
	w.must(w.c.Update(w.Context(), obj))
	w.equal("status after another update", want, status())

	other := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"readings": "not a list"}}}
	other.SetGroupVersionKind(widgets.WithKind("Gauge"))
	other.SetNamespace("default")
	other.SetName("b")
	w.create(other)
	w.equal("status of the other", nil, other.Object["status"])
}
