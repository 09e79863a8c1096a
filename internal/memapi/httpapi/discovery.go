// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"trueup.dev/internal/memapi/kinds"
)

// serverVersion is the version of Kubernetes whose kinds package memapi has.
var serverVersion = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0", Platform: "memory"}

// discovery returns the document of a path that lists groups, versions or resources, or nil for other paths.
func (t *Transport) discovery(path []string) any {
	if len(path) == 0 {
		return nil
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
			list.APIResources = append(list.APIResources, resourcesOf(kind)...)
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// resourcesOf returns the resource of a kind and its subresources.
func resourcesOf(kind *kinds.Kind) []metav1.APIResource {
	main := metav1.APIResource{
		Name: kind.Plural, SingularName: kind.Singular, Namespaced: kind.Namespaced, Kind: kind.Kind,
		Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
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
	return found
}
