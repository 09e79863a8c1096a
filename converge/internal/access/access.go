// SPDX-License-Identifier: Apache-2.0

// Package access has what programs may do and what they have used of it: rules of roles, as an API server applies them.
package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"trueup.dev/internal/memapi"
)

// Role is what a program may do, in one namespace or in all.
type Role struct {
	Kind, Name string
	// Namespace is empty if the role applies to all namespaces. A cluster role also applies to cluster-scoped objects.
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Allows reports whether a role has a rule for a permission.
func (r *Role) Allows(p memapi.Access) bool {
	if r.Namespace != "" && p.Namespace != r.Namespace || r.Kind == "Role" && p.Namespace == "" {
		return false
	}
	return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return permits(rule, p) })
}

// permits reports whether a rule is one for a permission.
// (k8s.io/component-helpers, auth/rbac/validation)
func permits(rule rbacv1.PolicyRule, p memapi.Access) bool {
	if !OneOf(rule.Verbs, p.Verb) || !OneOf(rule.APIGroups, p.Group) {
		return false
	}
	if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, p.Name) {
		return false
	}
	return OneOf(rule.Resources, p.FullResource()) ||
		p.Subresource != "" && slices.Contains(rule.Resources, "*/"+p.Subresource)
}

// Marker is the marker of kubebuilder for permissions of a resource, which differ in their verbs.
func Marker(group, resource string, verbs []string) string {
	if group == "" {
		group = `""`
	}
	slices.Sort(verbs)
	return fmt.Sprintf(
		"// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s", group, resource, strings.Join(slices.Compact(verbs), ";"),
	)
}

// OneOf reports whether a list of a rule has a value, or a wildcard.
func OneOf(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// Usage counts what the roles of a program allowed and refused, in one run or in all.
type Usage struct {
	used, missing map[memapi.Access]bool
}

// Use records a permission that was used.
func (a *Usage) Use(p memapi.Access) {
	if p.Name, p.Namespace = "", ""; a.used == nil {
		a.used = map[memapi.Access]bool{}
	}
	a.used[p] = true
}

// Lack records a permission that was missing.
func (a *Usage) Lack(p memapi.Access) {
	if p.Name, p.Namespace = "", ""; a.missing == nil {
		a.missing = map[memapi.Access]bool{}
	}
	a.missing[p] = true
}

// Add adds the authorizations of a run.
func (a *Usage) Add(run *Usage) {
	for p := range run.used {
		a.Use(p)
	}
	for p := range run.missing {
		a.Lack(p)
	}
}

// MissingRules returns a marker for each resource with missing permissions.
func (a *Usage) MissingRules() []string {
	byResource := map[[2]string][]string{}
	for p := range a.missing {
		at := [2]string{p.Group, p.FullResource()}
		byResource[at] = append(byResource[at], p.Verb)
	}
	var lines []string
	for at, verbs := range byResource {
		lines = append(lines, Marker(at[0], at[1], verbs))
	}
	slices.Sort(lines)
	return lines
}

// Unused returns the resources and verbs of a role that were not used.
func (r *Role) Unused(a *Usage) []string {
	var found []string
	for _, rule := range r.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if isNotSimulated(resource) {
					continue
				}
				name, subresource, _ := strings.Cut(resource, "/")
				left := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
					return a.uses(memapi.Access{Verb: verb, Group: group, Resource: name, Subresource: subresource})
				})
				if len(left) == 0 {
					continue
				}
				if group != "" {
					name += "." + group
				}
				if subresource != "" {
					name += "/" + subresource
				}
				found = append(found, fmt.Sprintf("%s (%s)", name, strings.Join(left, ", ")))
			}
		}
	}
	slices.SortFunc(found, cmp.Compare)
	return slices.Compact(found)
}

// uses reports whether a part of a rule, which may have wildcards, was used.
func (a *Usage) uses(part memapi.Access) bool {
	single := rbacv1.PolicyRule{
		Verbs: []string{part.Verb}, APIGroups: []string{part.Group}, Resources: []string{part.FullResource()},
	}
	for p := range a.used {
		if permits(single, p) {
			return true
		}
	}
	return false
}

// isNotSimulated reports whether a resource is one that processes use only in a cluster.
func isNotSimulated(resource string) bool {
	switch resource {
	case "events", "leases", "tokenreviews", "subjectaccessreviews":
		return true
	}
	return strings.HasSuffix(resource, "/finalizers")
}
