// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/manifests"
	"trueup.dev/internal/memapi"
	"trueup.dev/internal/nilcheck"
)

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

// accessRole is what a program may do, in one namespace or in all.
type accessRole struct {
	kind, name string
	// namespace is empty if the role applies to all namespaces. A cluster role also applies to cluster-scoped objects.
	namespace string
	rules     []rbacv1.PolicyRule
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
			c.program.roles = append(c.program.roles, accessRole{kind: "ClusterRole", name: obj.Name, rules: obj.Rules})
		case *rbacv1.Role:
			c.program.roles = append(
				c.program.roles, accessRole{kind: "Role", name: obj.Name, namespace: obj.Namespace, rules: obj.Rules},
			)
		default:
			c.problem("%s: %T is neither a Role nor a ClusterRole", field, obj)
		}
	}
}

// allows reports whether a role has a rule for a permission.
func (r *accessRole) allows(p memapi.Access) bool {
	if r.namespace != "" && p.Namespace != r.namespace || r.kind == "Role" && p.Namespace == "" {
		return false
	}
	return slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool { return permits(rule, p) })
}

// permits reports whether a rule is one for a permission.
// (k8s.io/component-helpers, auth/rbac/validation)
func permits(rule rbacv1.PolicyRule, p memapi.Access) bool {
	if !oneOf(rule.Verbs, p.Verb) || !oneOf(rule.APIGroups, p.Group) {
		return false
	}
	if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, p.Name) {
		return false
	}
	return oneOf(rule.Resources, p.FullResource()) ||
		p.Subresource != "" && slices.Contains(rule.Resources, "*/"+p.Subresource)
}

// rbacMarker is the marker of kubebuilder for permissions of a resource, which differ in their verbs.
func rbacMarker(group, resource string, verbs []string) string {
	if group == "" {
		group = `""`
	}
	slices.Sort(verbs)
	return fmt.Sprintf(
		"// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s", group, resource, strings.Join(slices.Compact(verbs), ";"),
	)
}
