// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"trueup.dev/internal/memapi/kinds"
)

// serverVersion is the version of Kubernetes whose kinds package memapi has.
var serverVersion = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0", Platform: "memory"}

// discovery returns the document of a path that lists groups, versions or resources, or nil for other paths.
func (t *Transport) discovery(path []string, accept string) any {
	if len(path) == 0 {
		return &metav1.RootPaths{Paths: []string{"/api", "/apis", "/openapi/v3", "/version"}}
	}
	if strings.Contains(accept, "as=APIGroupDiscoveryList") && strings.Contains(accept, "v=v2;") && len(path) == 1 {
		if aggregated := t.aggregated(path[0]); aggregated != nil {
			return aggregated
		}
	}
	switch depth := len(path); {
	case path[0] == "version" && depth == 1:
		return serverVersion
	case path[0] == "api" && depth == 1:
		return &metav1.APIVersions{TypeMeta: typeOf("APIVersions"), Versions: []string{"v1"}}
	case path[0] == "api" && depth == 2:
		return t.resources(schema.GroupVersion{Version: path[1]})
	case path[0] == "apis" && depth == 1:
		return &metav1.APIGroupList{TypeMeta: typeOf("APIGroupList"), Groups: t.groups()}
	case path[0] == "apis" && depth == 2:
		for _, group := range t.groups() {
			if group.Name == path[1] {
				group.TypeMeta = typeOf("APIGroup")
				return &group
			}
		}
	case path[0] == "apis" && depth == 3:
		return t.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	return nil
}

func typeOf(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }

// groups returns all groups but the core one, each with its versions in the order of their priority.
func (t *Transport) groups() []metav1.APIGroup {
	versions := map[string][]string{}
	for _, review := range reviews {
		versions[review.kind.Group] = []string{review.kind.Version}
	}
	for _, kind := range t.Registry.Kinds() {
		if kind.Group != "" && !slices.Contains(versions[kind.Group], kind.Version) {
			versions[kind.Group] = append(versions[kind.Group], kind.Version)
		}
	}
	var groups []metav1.APIGroup
	for name, found := range versions {
		slices.SortFunc(found, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		group := metav1.APIGroup{Name: name}
		for _, v := range found {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v,
			})
		}
		group.PreferredVersion = group.Versions[0]
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b metav1.APIGroup) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// resources returns the resources of a version, or nil if it has none.
func (t *Transport) resources(group schema.GroupVersion) any {
	list := &metav1.APIResourceList{TypeMeta: typeOf("APIResourceList"), GroupVersion: group.String()}
	for _, kind := range t.Registry.Kinds() {
		if kind.GroupVersion() == group {
			list.APIResources = append(list.APIResources, t.resourcesOf(kind)...)
		}
	}
	list.APIResources = append(list.APIResources, reviewResources(group)...)
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// terminating reports whether the definition of a kind is being deleted, with the objects of the kind.
func (t *Transport) terminating(kind *kinds.Kind) bool {
	if t.Server == nil {
		return false
	}
	crd := t.Server.Definition(kind)
	return crd != nil && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)
}

// resourcesOf returns the resource of a kind and its subresources.
func (t *Transport) resourcesOf(kind *kinds.Kind) []metav1.APIResource {
	main := metav1.APIResource{
		Name: kind.Plural, SingularName: kind.Singular, Namespaced: kind.Namespaced, Kind: kind.Kind,
		Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		ShortNames: kind.ShortNames, Categories: kind.Categories,
	}
	if kind.Kind == "Namespace" && kind.Group == "" {
		main.Verbs = slices.DeleteFunc(main.Verbs, func(verb string) bool { return verb == "deletecollection" })
	}
	if kind.Custom { // in this order
		main.Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
		if t.terminating(kind) {
			main.Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}
		}
	} else {
		main.ShortNames, main.Categories = shortNames[kind.Plural], categories[kind.Plural]
	}
	found := []metav1.APIResource{main}
	sub := metav1.APIResource{Namespaced: kind.Namespaced, Kind: kind.Kind, Verbs: metav1.Verbs{"get", "patch", "update"}}
	if kind.Status {
		sub.Name = kind.Plural + "/status"
		found = append(found, sub)
	}
	if kind.Scale != nil {
		sub.Name, sub.Group, sub.Version, sub.Kind = kind.Plural+"/scale", "autoscaling", "v1", "Scale"
		found = append(found, sub)
	}
	if kind.Kind == "Pod" && kind.Group == "" {
		found = append(found, metav1.APIResource{
			Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1", Kind: "Eviction",
			Verbs: metav1.Verbs{"create"},
		})
	}
	return found
}
