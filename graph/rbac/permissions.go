// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/graph"
)

// Permission is one verb on one resource.
type Permission struct {
	// Group is the API group. It is empty for the core group.
	Group string
	// Resource is the plural of the kind, followed by a slash and the subresource, if any.
	Resource string
	Verb     string
}

// String returns the permission, for example "update databases/status.database.trueup.dev".
func (p Permission) String() string {
	return p.Verb + " " + schema.GroupResource{Group: p.Group, Resource: p.Resource}.String()
}

// Permissions is a set of permissions.
type Permissions map[Permission]bool

// Of returns a set of permissions.
func Of(permissions ...Permission) Permissions {
	set := Permissions{}
	for _, p := range permissions {
		set[p] = true
	}
	return set
}

// Options change what [Declared] returns.
type Options struct {
	// Mapper returns the plural of a kind. By default, the plural is guessed from the kind.
	Mapper meta.RESTMapper
	// LeaderElection adds the permissions of the leader election of a manager.
	LeaderElection bool
	// Shards adds the permissions of a program whose objects are divided among several replicas, see package
	// trueup.dev/shards: to hold a Lease, and to release the resources that its controllers reconcile.
	Shards bool
	// Config selects the permissions of the reconcilers below the WithConfig of this name, which usually belong to another
	// role or cluster. Defaults to the namespaces of the config of the roots.
	Config string
}

// Configs returns the names of the WithConfig reconcilers whose permissions [Options.Config] selects, sorted.
func Configs(g *graph.Graph) []string {
	names := map[string]bool{}
	for n := range g.All() {
		for _, access := range n.Access {
			names[access.Config] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Declared returns the permissions that the reconcilers of a graph declare. The error lists kinds whose group is
// unknown: their Go types are not registered with the scheme.
func Declared(g *graph.Graph, o Options) (Permissions, error) {
	set, problems := Permissions{}, []error{}
	for n := range g.All() {
		for _, access := range n.Access {
			if access.Config != o.Config {
				continue
			}
			resource, err := o.resource(access)
			if err != nil {
				problems = append(problems, fmt.Errorf("rbac: %s: %w", cmp.Or(n.Path, n.Type), err))
				continue
			}
			for _, verb := range access.Verbs {
				set[Permission{Group: access.Kind.Group, Resource: resource, Verb: verb}] = true
			}
		}
	}
	if o.LeaderElection || o.Shards {
		for _, verb := range []string{"get", "create", "update"} {
			set[Permission{Group: "coordination.k8s.io", Resource: "leases", Verb: verb}] = true
		}
	}
	for _, root := range g.Controllers {
		if !o.Shards || o.Config != "" || !isDivided(root) || root.Resource.Unknown != "" {
			continue // a kind that is unknown is a problem already
		}
		divided, err := o.groupResource(*root.Resource)
		if err != nil {
			continue // so is a kind that the mapper does not know
		}
		set[Permission{Group: divided.Group, Resource: divided.Resource, Verb: "patch"}] = true
	}
	if o.LeaderElection {
		for _, verb := range []string{"create", "patch"} {
			set[Permission{Resource: "events", Verb: verb}] = true
		}
	}
	return set, errors.Join(problems...)
}

func (o Options) resource(access graph.Access) (string, error) {
	kind := access.Kind
	if kind.Unknown != "" {
		return "", fmt.Errorf("the group of kind %s is unknown: %s", kind.Kind, kind.Unknown)
	}
	gvk := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
	return resourceOf(o.Mapper, gvk, access.Subresource)
}

// resourceOf returns the resource of a kind as in a role. Without a mapper, it guesses the plural.
func resourceOf(mapper meta.RESTMapper, kind schema.GroupVersionKind, subresource string) (string, error) {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	if mapper != nil {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return "", err
		}
		plural = mapping.Resource
	}
	if subresource != "" {
		return plural.Resource + "/" + subresource, nil
	}
	return plural.Resource, nil
}

// FromRules returns the permissions that rules grant. It ignores rules for non-resource URLs, and resource names: a
// rule for some names counts as a rule for all.
func FromRules(rules []rbacv1.PolicyRule) Permissions {
	set := Permissions{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					set[Permission{Group: group, Resource: resource, Verb: verb}] = true
				}
			}
		}
	}
	return set
}

// Rules returns the permissions as sorted rules: one for all resources of a group that need the same verbs.
func (p Permissions) Rules() []rbacv1.PolicyRule {
	verbs := map[schema.GroupResource][]string{}
	for permission := range p {
		resource := schema.GroupResource{Group: permission.Group, Resource: permission.Resource}
		verbs[resource] = append(verbs[resource], permission.Verb)
	}
	resources := slices.SortedFunc(maps.Keys(verbs), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	rules := []rbacv1.PolicyRule{}
	for _, resource := range resources {
		slices.Sort(verbs[resource])
		i := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] == resource.Group && slices.Equal(rule.Verbs, verbs[resource])
		})
		if i < 0 {
			i = len(rules)
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Verbs: verbs[resource]})
		}
		rules[i].Resources = append(rules[i].Resources, resource.Resource)
	}
	return rules
}

// ClusterRole returns the permissions as a ClusterRole.
func (p Permissions) ClusterRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: p.Rules(),
	}
}

// Role returns the permissions as a Role, for a controller that sees one namespace. A Role grants nothing for
// cluster-scoped kinds.
func (p Permissions) Role(namespace, name string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: p.Rules(),
	}
}

// Markers returns the permissions as lines of Go with markers of Kubebuilder.
func (p Permissions) Markers() string {
	var b strings.Builder
	for _, rule := range p.Rules() {
		group := rule.APIGroups[0]
		if group == "" {
			group = `""`
		}
		fmt.Fprintf(&b, "// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s\n",
			group, strings.Join(rule.Resources, ";"), strings.Join(rule.Verbs, ";"))
	}
	return b.String()
}

// sorted returns the permissions in the order of group, resource and verb.
func (p Permissions) sorted() []Permission {
	return slices.SortedFunc(maps.Keys(p), func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
}
