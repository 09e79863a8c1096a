// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// givenObjects are the objects and namespaces that a case needs.
type givenObjects struct {
	objects    []*givenObject
	namespaces []string
}

// givenObject is a given object of a case.
type givenObject struct {
	// origin is the field of the case that has the object.
	origin     string
	id         objectID
	object     *unstructured.Unstructured
	readerOnly bool
}

// check returns the given objects of a case. The error has all mistakes in them or, if there are none, all reasons to
// skip the case.
func (a *API) check(c Case) (*givenObjects, error) {
	given := &givenObjects{}
	var mistakes, reasons []error
	problem := func(err error) {
		if _, ok := errors.AsType[*SkipError](err); ok {
			reasons = append(reasons, err)
		} else if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	for _, field := range []struct {
		name       string
		objects    []client.Object
		readerOnly bool
	}{{"GivenObjects", c.GivenObjects, false}, {"APIGivenObjects", c.APIGivenObjects, true}} {
		for i, obj := range field.objects {
			entry, err := a.checkObject(fmt.Sprintf("%s[%d]", field.name, i), obj)
			if err == nil {
				entry.readerOnly = field.readerOnly
				err = given.add(entry)
			}
			problem(err)
		}
	}
	problem(a.checkResources(c.GivenAPIResources))
	problem(checkBuilder(a.scheme, c.WithClientBuilder))
	if len(mistakes) == 0 && len(reasons) > 0 {
		return nil, &SkipError{Reason: errors.Join(reasons...).Error()}
	}
	given.sort()
	given.namespaces = namespaces(c.Created, given.objects)
	return given, errors.Join(mistakes...)
}

// add adds an object, unless it has been added before.
func (g *givenObjects) add(entry *givenObject) error {
	i := slices.IndexFunc(g.objects, func(other *givenObject) bool { return other.id == entry.id })
	if i < 0 {
		g.objects = append(g.objects, entry)
		return nil
	}
	other := g.objects[i]
	if diff := cmp.Diff(withoutEmpty(other.object.Object), withoutEmpty(entry.object.Object)); diff != "" {
		return skipf("%s and %s differ in %s, and a cluster has no stale cache (-, +):\n%s",
			other.origin, entry.origin, entry.id, strings.TrimRight(diff, "\n"))
	}
	return nil
}

// sort moves namespaces to the front and owners before their dependents. Otherwise the order is kept.
func (g *givenObjects) sort() {
	var sorted []*givenObject
	seen := map[objectID]bool{}
	var visit func(entry *givenObject)
	visit = func(entry *givenObject) {
		if seen[entry.id] {
			return
		}
		seen[entry.id] = true
		for _, ref := range entry.object.GetOwnerReferences() {
			for _, owner := range g.objects {
				if owner.id.kind == ref.Kind && owner.id.name == ref.Name {
					visit(owner)
				}
			}
		}
		sorted = append(sorted, entry)
	}
	for _, first := range []bool{true, false} {
		for _, entry := range g.objects {
			if isNamespace(entry.id) == first {
				visit(entry)
			}
		}
	}
	g.objects = sorted
}

// checkObject returns a given object with its id in the cluster.
func (a *API) checkObject(origin string, obj client.Object) (*givenObject, error) {
	u, err := a.toUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	kind := u.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		err = a.notServed(kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	id := idIn(mapping, client.ObjectKeyFromObject(u))
	switch {
	case id.name == "":
		return nil, skipf("%s: the %s has no name", origin, id.kind)
	case id.namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return nil, skipf("%s: %s has no namespace", origin, id)
	}
	return &givenObject{origin: origin, id: id, object: u}, nil
}

// notServed returns an error that explains how to install a kind.
func (a *API) notServed(kind schema.GroupVersionKind) error {
	if mapping, err := a.mapper.RESTMapping(kind.GroupKind()); err == nil {
		return fmt.Errorf(
			"the API at %s serves %s in %s, not in %s", a.restConfig.Host, kind.GroupKind(), mapping.GroupVersionKind.Version,
			kind.Version,
		)
	}
	return fmt.Errorf("the API at %s does not serve %s of %s: install its CustomResourceDefinition before the cases run, "+
		"with the field CRDs of sandbox.TestOptions or the method InstallCRDs of a sandbox", a.restConfig.Host, kind.Kind,
		kind.GroupVersion())
}

// checkResources returns an error if the cluster does not serve the given API resources.
func (a *API) checkResources(lists []*metav1.APIResourceList) error {
	var differences []string
	for i, list := range lists {
		served, err := a.discovery.ServerResourcesForGroupVersion(list.GroupVersion)
		if err != nil && !apierrs.IsNotFound(err) {
			return fmt.Errorf("GivenAPIResources[%d]: %w", i, err)
		}
		for _, resource := range list.APIResources {
			if served == nil || !slices.ContainsFunc(served.APIResources, func(other metav1.APIResource) bool {
				return other.Name == resource.Name && other.Kind == resource.Kind && other.Namespaced == resource.Namespaced
			}) {
				differences = append(
					differences, fmt.Sprintf("%s of kind %s in %s", resource.Name, resource.Kind, list.GroupVersion),
				)
			}
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return skipf(
		"GivenAPIResources: the cluster does not serve, or not with that scope: %s", strings.Join(differences, ", "),
	)
}

// namespaces returns the namespaces that the case needs and does not create itself.
func namespaces(created []Created, given []*givenObject) []string {
	needed, own := map[string]bool{}, map[string]bool{}
	for _, entry := range given {
		needed[entry.id.namespace] = true
		if isNamespace(entry.id) {
			own[entry.id.name] = true
		}
	}
	for _, obj := range created {
		needed[obj.Namespace] = true
		if isNamespace(objectID{group: obj.Group, kind: obj.Kind}) {
			own[obj.Name] = true
		}
	}
	delete(needed, "")
	for name := range own {
		delete(needed, name)
	}
	return slices.Sorted(maps.Keys(needed))
}
