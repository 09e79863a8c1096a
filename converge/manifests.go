// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/access"
	"trueup.dev/internal/objects/manifests"
	"trueup.dev/internal/objects/nilcheck"
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

// Roles reads Roles and ClusterRoles for [Scenario.Roles] from YAML and JSON files, which may have several documents.
// In a directory it reads the files with the extensions .yaml, .yml and .json in the order of their names, without
// subdirectories. Objects of other kinds are ignored. The error lists all problems, with file and document; it is also
// an error if there is no role.
func Roles(paths ...string) ([]client.Object, error) {
	documents, err := manifests.Load(paths, manifests.Rules{})
	problems := []error{err}
	var roles []client.Object
	for _, d := range documents {
		gvk := d.Object.GroupVersionKind()
		role := roleOf(gvk.Kind)
		if gvk.Group != rbacv1.GroupName || role == nil {
			continue
		}
		if gvk.Version != rbacv1.SchemeGroupVersion.Version {
			problems = append(problems, fmt.Errorf("%s: %s of %s is not supported", d.Where(), gvk.Kind, gvk.GroupVersion()))
			continue
		}
		text, err := json.Marshal(d.Object.Object)
		if err == nil {
			err = json.Unmarshal(text, role) // its errors contain the name of the field
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", d.Where(), err))
			continue
		}
		roles = append(roles, role)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("Roles: %w", err)
	}
	if len(roles) == 0 {
		return nil, fmt.Errorf("Roles: no Role or ClusterRole in %s", strings.Join(paths, ", "))
	}
	return roles, nil
}

// RolesOrDie is [Roles] that panics on an error, for a field of a [Scenario].
func RolesOrDie(paths ...string) []client.Object {
	roles, err := Roles(paths...)
	if err != nil {
		panic(err)
	}
	return roles
}

// roleOf returns an empty role of a kind, or nil.
func roleOf(kind string) client.Object {
	switch kind {
	case "Role":
		return &rbacv1.Role{}
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	}
	return nil
}

// roles checks the roles of a program.
func (c *scenarioCheck) roles(prefix string, objects []client.Object) {
	for i, obj := range objects {
		field := fmt.Sprintf("%sRoles[%d]", prefix, i)
		if nilcheck.IsNil(obj) {
			c.problem("%s is required", field)
			continue
		}
		if u, ok := obj.(runtime.Unstructured); ok {
			typed := roleOf(obj.GetObjectKind().GroupVersionKind().Kind)
			if typed != nil {
				converter := runtime.DefaultUnstructuredConverter
				if err := converter.FromUnstructured(u.UnstructuredContent(), typed); err != nil {
					c.problem("%s: %w", field, err)
					continue
				}
				obj = typed
			}
		}
		switch obj := obj.(type) {
		case *rbacv1.ClusterRole:
			if obj.AggregationRule != nil && len(obj.Rules) == 0 {
				c.problem("%s: the rules of an aggregated ClusterRole are required", field)
			}
			c.program.Roles = append(c.program.Roles, access.Role{Kind: "ClusterRole", Name: obj.Name, Rules: obj.Rules})
		case *rbacv1.Role:
			c.program.Roles = append(
				c.program.Roles, access.Role{Kind: "Role", Name: obj.Name, Namespace: obj.Namespace, Rules: obj.Rules},
			)
		default:
			c.problem("%s: %T is neither a Role nor a ClusterRole", field, obj)
		}
	}
}
