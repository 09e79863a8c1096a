// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/manifests"
)

// CRDs reads CustomResourceDefinitions for [Scenario.CRDs] from YAML and JSON files, which may have several documents.
// In a directory it reads the files with the extensions .yaml, .yml and .json in the order of their names, without
// subdirectories. Objects of other kinds are ignored. The error lists all problems, with file and document; it is also
// an error if there is no definition, or if one is defined twice.
func CRDs(paths ...string) ([]client.Object, error) {
	kind := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	documents, err := manifests.Load(
		paths, manifests.Rules{Only: kind.GroupKind(), Kinds: []schema.GroupVersionKind{kind}},
	)
	problems := []error{err}
	var crds []client.Object
	for _, d := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		text, err := json.Marshal(d.Object.Object)
		if err == nil {
			err = json.Unmarshal(text, crd) // its errors contain the name of the field
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", d.Where(), err))
			continue
		}
		crds = append(crds, crd)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("CRDs: no CustomResourceDefinition in %s", strings.Join(paths, ", "))
	}
	return crds, nil
}

// CRDsOrDie is [CRDs] that panics on an error, for a field of a [Scenario].
func CRDsOrDie(paths ...string) []client.Object {
	crds, err := CRDs(paths...)
	if err != nil {
		panic(err)
	}
	return crds
}
