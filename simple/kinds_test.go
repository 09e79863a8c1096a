// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"errors"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/resource"
)

const group = "simple.example.com"

// Widget is a kind of the app.
type (
	Widget     = resource.TypedSpecStatusObject[WidgetSpec, WidgetStatus]
	WidgetList = resource.TypedList[Widget]
)

type WidgetSpec struct {
	Title string `json:"title"`
	Size  int64  `json:"size,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Applied            string `json:"applied,omitempty"`
}

var widgetKind = resource.Kind{
	Schema: resource.NewSimpleSchema(group, "v1", &Widget{}, &WidgetList{}, resource.WithKind("Widget")),
}

// GadgetV1 is a kind in two versions: v1 has the first and the last name in one field. It is stored as v1; v2 is the
// hub.
type GadgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              GadgetV1Spec `json:"spec"`
}

type GadgetV1Spec struct {
	Name string `json:"name"`
}

func (g *GadgetV1) DeepCopyObject() runtime.Object {
	out := &GadgetV1{TypeMeta: g.TypeMeta, Spec: g.Spec}
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

func (g *GadgetV1) DeepCopyInto(out *GadgetV1) { *out = *g.DeepCopyObject().(*GadgetV1) }

func (g *GadgetV1) ConvertTo(hub *GadgetV2) error {
	if g.Spec.Name == "Nemo" {
		return errors.New("Nemo is not a valid name")
	}
	hub.Spec.First, hub.Spec.Last, _ = strings.Cut(g.Spec.Name, " ")
	return nil
}

func (g *GadgetV1) ConvertFrom(hub *GadgetV2) error {
	g.Spec.Name = strings.TrimSpace(hub.Spec.First + " " + hub.Spec.Last)
	return nil
}

type GadgetV2Spec struct {
	First string `json:"first"`
	Last  string `json:"last,omitempty"`
}

type (
	GadgetV1List = resource.TypedList[GadgetV1]
	GadgetV2     = resource.TypedSpecObject[GadgetV2Spec]
	GadgetV2List = resource.TypedList[GadgetV2]
)

var (
	gadgetV1 = resource.Kind{
		Schema: resource.NewSimpleSchema(group, "v1", &GadgetV1{}, &GadgetV1List{}, resource.WithKind("Gadget")),
	}
	gadgetV2 = resource.Kind{
		Schema: resource.NewSimpleSchema(group, "v2", &GadgetV2{}, &GadgetV2List{}, resource.WithKind("Gadget")),
	}
)

// The Gauge is a kind in two versions with the Go types of the Gadget, for tests that do not change its definition.
var (
	gaugeV1 = resource.Kind{
		Schema: resource.NewSimpleSchema(group, "v1", &GadgetV1{}, &GadgetV1List{}, resource.WithKind("Gauge")),
	}
	gaugeV2 = resource.Kind{
		Schema: resource.NewSimpleSchema(group, "v2", &GadgetV2{}, &GadgetV2List{}, resource.WithKind("Gauge")),
	}
)

// crd returns the definition of a kind in several versions, the first of which is stored.
func crd(kind, plural string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = plural + "." + group
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group,
		Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ListKind: kind + "List",
		},
	}
	for i, version := range versions {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			},
		})
	}
	return definition
}
