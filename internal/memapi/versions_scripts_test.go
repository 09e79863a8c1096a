// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// gadgets is a definition with two versions that are converted.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.STRATEGY.example.com}
spec:
  group: STRATEGY.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: false
    selectableFields: [{jsonPath: .spec.size}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.seen}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 100}
              color: {type: string, default: red}
          status: {type: object, properties: {seen: {type: integer}}}
  - name: v2
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
              dimensions: {type: object, properties: {size: {type: integer, maximum: 50}}}
              color: {type: string}
              weight: {type: integer, default: 5}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status: {type: object, properties: {seen: {type: integer}, phase: {type: string}}}
  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

const weightAnnotation = "example.com/weight"

// convertGadget is the conversion of the webhook. Some colors make it fail.
func convertGadget(content map[string]any, to string) error {
	spec, _ := content["spec"].(map[string]any)
	switch spec["color"] {
	case "fail":
		return errors.New("no such color")
	case "rename":
		return unstructured.SetNestedField(content, "other", "metadata", "name")
	case "meta":
		_ = unstructured.SetNestedField(content, "x", "metadata", "labels", "added")
		_ = unstructured.SetNestedField(content, []any{"example.com/added"}, "metadata", "finalizers")
	case "label":
		_ = unstructured.SetNestedField(content, "not a label!", "metadata", "labels", "added")
	case "version":
		return nil
	}
	from := content["apiVersion"]
	content["apiVersion"] = to
	if spec == nil || from == to {
		return nil
	}
	if strings.HasSuffix(to, "/v2") {
		if size, found := spec["size"]; found {
			spec["dimensions"] = map[string]any{"size": size}
		}
		delete(spec, "size")
		if weight, found, _ := unstructured.NestedString(content, "metadata", "annotations", weightAnnotation); found {
			spec["weight"] = int64(len(weight))
			unstructured.RemoveNestedField(content, "metadata", "annotations", weightAnnotation)
		}
		return nil
	}
	if size, found, _ := unstructured.NestedFieldNoCopy(spec, "dimensions", "size"); found {
		spec["size"] = size
	}
	delete(spec, "dimensions")
	if weight, found := spec["weight"].(int64); found {
		delete(spec, "weight")
		return unstructured.SetNestedField(
			content, strings.Repeat("+", int(weight)), "metadata", "annotations", weightAnnotation,
		)
	}
	return nil
}

// convertReview is the webhook.
func convertReview(review *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	response := &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
	for _, raw := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		if err := convertGadget(obj.Object, review.Request.DesiredAPIVersion); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		data, err := obj.MarshalJSON()
		if err != nil {
			return nil, err
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: data})
	}
	answer := &apiextensionsv1.ConversionReview{Response: response}
	answer.SetGroupVersionKind(review.GroupVersionKind())
	return answer, nil
}

// versionScripts are requests for objects of a definition with two versions. Each line has a verb, a version, a name
// and content.
var versionScripts = []string{
	`create v1 a {spec: {size: 3, other: 1}}
get v1 a {}
get v2 a {}
patch v2 a {spec: {weight: 7, tags: [x]}}
get v1 a {}
patch v1 a {spec: {size: 3}}
patch v1 a {spec: {size: 4}}
get v2 a {}
patch v2 a {spec: {weight: null}}
patch v2 a {spec: {weight: 5}}
patch v1 a {spec: {size: 101}}
patch v1 a {spec: {size: 60}}
patch v2 a {spec: {color: blue}}
patch v2 a {spec: {dimensions: {size: 70}}}
patch v1 a {metadata: {labels: {a: b}}}
patchstatus v1 a {status: {seen: 1, phase: X}}
patchstatus v2 a {status: {phase: Y}}
patch v2 a {spec: {dimensions: {size: 70}}}
get v1 a {}
scale v1 a {spec: {replicas: 8}}
get v2 a {}
patch v0 a {spec: {a: b}}
list v1 - {}
list v2 - {}
listsize v1 - 8
delete v1 a {}
get v2 a {}
create v2 a {spec: {dimensions: {size: 2}}}
get v1 a {}`,
	`create v2 b {metadata: {finalizers: [example.com/a]}, spec: {color: blue}}
delete v1 b {}
patch v1 b {metadata: {finalizers: null}}
get v2 b {}
create v1 b {}
create v2 b {}
dry v1 c {spec: {size: 1}}
dry v2 c {spec: {weight: 1}}
list v1 - {}`,
	`apply v1 d {spec: {size: 3}}
apply v2 d {spec: {weight: 7}}
get v1 d {}
apply v1 d {spec: {size: 4, color: blue}}
other v2 d {spec: {color: green}}
other v2 d {spec: {dimensions: {size: 9}}}
force v2 d {spec: {dimensions: {size: 9}}}
get v2 d {}
apply v1 d {}
get v2 d {}
patch v1 d {spec: {size: 5}}
get v2 d {}
apply v2 d {spec: {tags: [a, b]}}
other v2 d {spec: {tags: [c]}}
patch v1 d {metadata: {labels: {a: b}}}
get v1 d {}`,
	`create v1 e {spec: {size: 1}}
patch v2 e {spec: {tags: [a]}}
patch v1 e {spec: {color: blue}}
other v1 e {spec: {size: 1}}
get v2 e {}`,
	`create v2 h {spec: {color: meta}}
get v1 h {}
patch v1 h {spec: {size: 1}}
get v2 h {}`,
	`create v1 f {spec: {color: fail}}
create v2 f {spec: {color: fail}}
get v1 f {}
get v2 f {}
list v1 - {}
list v2 - {}
patch v1 f {spec: {color: blue}}
apply v1 f {spec: {color: blue}}
patchstatus v1 f {status: {seen: 1}}
delete v1 f {}
patch v2 f {spec: {color: blue}}
get v1 f {}`,
	`create v2 g {spec: {color: rename}}
get v1 g {}`,
	`create v2 i {spec: {color: label}}
get v1 i {}
create v1 i2 {spec: {color: label}}`,
	`create v2 j {spec: {color: version}}
get v1 j {}
create v1 j2 {spec: {color: version}}`,
}

func gadgetDefinition(t testing.TB, strategy string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(gadgets, "STRATEGY", strategy)), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}
