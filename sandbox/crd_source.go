// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const crdKind = "CustomResourceDefinition"

// definition is a CustomResourceDefinition and its origin.
type definition struct {
	origin string
	crd    *apiextensionsv1.CustomResourceDefinition
	// object is sent to the API. It is the source itself, because it may have fields that this version of the Go type does
	// not have.
	object *unstructured.Unstructured
}

// readDefinitions returns the definitions in sources, each name once. Its error lists all problems.
func readDefinitions(sources []any) ([]definition, error) {
	all, err := crdParser.readAll(sources)
	errs := []error{err}
	if err == nil && len(all) == 0 && slices.ContainsFunc(sources, holdsFiles) {
		errs = append(errs, fmt.Errorf("the sources contain no %s", crdKind))
	}
	byName := map[string]definition{}
	var unique []definition
	for _, d := range all {
		first, ok := byName[d.crd.Name]
		switch {
		case !ok:
			byName[d.crd.Name] = d
			unique = append(unique, d)
		case !reflect.DeepEqual(first.object.Object, d.object.Object):
			errs = append(errs, fmt.Errorf("%s: defines %s differently from %s", d.origin, d.crd.Name, first.origin))
		}
	}
	return unique, errors.Join(errs...)
}

// holdsFiles reports whether a source is not a Go object, of which there may be none.
func holdsFiles(source any) bool {
	switch source.(type) {
	case string, fs.FS:
		return true
	}
	return false
}

var crdParser = &parser[definition]{
	what:    "definitions",
	want:    "*CustomResourceDefinition, []*CustomResourceDefinition",
	version: apiextensionsv1.SchemeGroupVersion,
	objects: func(src any) ([]runtime.Object, bool) {
		switch src := src.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			return []runtime.Object{src}, true
		case []*apiextensionsv1.CustomResourceDefinition:
			return asObjects(src), true
		}
		return nil, false
	},
	parse: newDefinition,
}

// newDefinition checks that object is a definition that can be installed, and removes the fields that only the API
// server may write.
func newDefinition(origin string, object map[string]any) (definition, error) {
	d := definition{
		origin: origin,
		object: &unstructured.Unstructured{Object: object},
		crd:    &apiextensionsv1.CustomResourceDefinition{},
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if group, _, _ := strings.Cut(apiVersion, "/"); group != apiextensionsv1.GroupName && kind != crdKind {
		return d, errOtherKind
	}
	if want := apiextensionsv1.SchemeGroupVersion.String(); apiVersion != want || kind != crdKind {
		return d, fmt.Errorf("%s: apiVersion %q, kind %q: want %s, %s", origin, apiVersion, kind, want, crdKind)
	}
	unstructured.RemoveNestedField(object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	// Convert through JSON, because its errors contain the name of the field.
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, d.crd)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", origin, err)
	}
	if d.crd.Name == "" {
		return d, fmt.Errorf("%s: metadata.name is required", origin)
	}
	d.origin = fmt.Sprintf("%s (%s)", origin, d.crd.Name)
	return d, nil
}
