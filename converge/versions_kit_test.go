// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gaugeV1 is the version of users.
type gaugeV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gaugeSpecV1 `json:"spec,omitzero"`
	Status            gaugeStatus `json:"status,omitzero"`
}

type gaugeSpecV1 struct {
	Size int `json:"size,omitempty"`
}

type gaugeStatus struct {
	Phase string `json:"phase,omitempty"`
}

func (g *gaugeV1) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// gaugeV2 is the version of the controller.
type gaugeV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gaugeSpecV2   `json:"spec,omitzero"`
	Status            gaugeStatusV2 `json:"status,omitzero"`
}

type gaugeSpecV2 struct {
	Size string `json:"size,omitempty"`
	Unit string `json:"unit,omitempty"`
}

type gaugeStatusV2 struct {
	Phase string `json:"phase,omitempty"`
	Shown string `json:"shown,omitempty"`
}

func (g *gaugeV2) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

type gaugeListV2 struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gaugeV2 `json:"items"`
}

func (l *gaugeListV2) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*gaugeV2))
	}
	return &copied
}

// keptV2 is the annotation in which objects of v1 keep what only v2 has.
const keptV2 = "example.com/v2"

// gaugeKept are the fields that only v2 has.
type gaugeKept struct{ Unit, Shown string }

// gaugeConverter converts between the versions.
type gaugeConverter struct {
	// loses is the mistake of a conversion: what only v2 has is not keptV2 in v1.
	loses bool
	// noUnit is the mistake to leave a field empty that has a default in v2: objects that are stored as v1 do not get it.
	noUnit bool
}

func (c gaugeConverter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	switch src := src.(type) {
	case *gaugeV1:
		return c.toHub(src, dst.(*gaugeV2))
	case *gaugeV2:
		return c.fromHub(src, dst.(*gaugeV1))
	}
	return errors.New("no gauge")
}

func (c gaugeConverter) toHub(g *gaugeV1, hub *gaugeV2) error {
	hub.ObjectMeta = *g.DeepCopy()
	hub.Spec.Size = strconv.Itoa(g.Spec.Size)
	hub.Status.Phase = g.Status.Phase
	text, found := g.Annotations[keptV2]
	if !found {
		if !c.noUnit {
			hub.Spec.Unit = "cm"
		}
		return nil
	}
	delete(hub.Annotations, keptV2)
	var values gaugeKept
	err := json.Unmarshal([]byte(text), &values)
	hub.Spec.Unit, hub.Status.Shown = values.Unit, values.Shown
	return err
}

func (c gaugeConverter) fromHub(hub *gaugeV2, g *gaugeV1) error {
	g.ObjectMeta = *hub.DeepCopy()
	g.Status.Phase = hub.Status.Phase
	var err error
	if g.Spec.Size, err = strconv.Atoi(hub.Spec.Size); err != nil || c.loses {
		return err
	}
	text, err := json.Marshal(gaugeKept{hub.Spec.Unit, hub.Status.Shown})
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, keptV2, string(text))
	return err
}

var gaugeGroup = schema.GroupVersion{Group: "example.com", Version: "v2"}

const gaugeCRD = `
metadata: {name: gauges.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
  conversion: {strategy: Webhook}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
          status: {type: object, properties: {phase: {type: string}}}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: string}, unit: {type: string, default: cm}}}
          status: {type: object, properties: {phase: {type: string}, shown: {type: string}}}
`
