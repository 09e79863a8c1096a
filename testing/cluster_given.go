// SPDX-License-Identifier: Apache-2.0

package testing

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

// givenOnCluster is what a cluster gets for a case.
type givenOnCluster struct {
	objects    []*clusterGiven
	namespaces []string
}

// clusterGiven is an object that a case is given.
type clusterGiven struct {
	// origin is where the case has it.
	origin     string
	id         objectID
	object     *unstructured.Unstructured
	readerOnly bool
}

// check returns what a config gives to a cluster, with all mistakes in it, or otherwise with all reasons why a cluster
// cannot have it.
func (a *clusterAPI) check(c *ExpectConfig) (*givenOnCluster, error) {
	given := &givenOnCluster{}
	var mistakes, reasons []error
	problem := func(err error) {
		if _, ok := errors.AsType[*notOnCluster](err); ok {
			reasons = append(reasons, err)
		} else if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	for _, field := range []struct {
		name       string
		objects    []client.Object
		readerOnly bool
	}{{"GivenObjects", c.given.objects, false}, {"APIGivenObjects", c.given.apiObjects, true}} {
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
		return nil, &notOnCluster{reason: errors.Join(reasons...).Error()}
	}
	given.sort()
	given.namespaces = a.namespaces(c, given.objects)
	return given, errors.Join(mistakes...)
}

// add adds an object, unless it is given already.
func (g *givenOnCluster) add(entry *clusterGiven) error {
	i := slices.IndexFunc(g.objects, func(other *clusterGiven) bool { return other.id == entry.id })
	if i < 0 {
		g.objects = append(g.objects, entry)
		return nil
	}
	other := g.objects[i]
	if diff := cmp.Diff(withoutEmpty(other.object.Object), withoutEmpty(entry.object.Object)); diff != "" {
		return notOnClusterf("%s and %s contradict each other about %s, and a cluster has no stale cache (-, +):\n%s",
			other.origin, entry.origin, entry.id, strings.TrimRight(diff, "\n"))
	}
	return nil
}

// sort puts owners before what they own, and namespaces before all. Otherwise the order remains.
func (g *givenOnCluster) sort() {
	var sorted []*clusterGiven
	seen := map[objectID]bool{}
	var visit func(entry *clusterGiven)
	visit = func(entry *clusterGiven) {
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

// checkObject returns how a cluster knows an object.
func (a *clusterAPI) checkObject(origin string, obj client.Object) (*clusterGiven, error) {
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
		return nil, notOnClusterf("%s: the %s has no name", origin, id.kind)
	case id.namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return nil, notOnClusterf("%s: %s has no namespace", origin, id)
	}
	return &clusterGiven{origin: origin, id: id, object: u}, nil
}

// notServed says what to do about a kind that the API does not serve.
func (a *clusterAPI) notServed(kind schema.GroupVersionKind) error {
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

// checkResources returns an error if a cluster does not serve what the case says.
func (a *clusterAPI) checkResources(lists []*metav1.APIResourceList) error {
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
	return notOnClusterf(
		"GivenAPIResources: the cluster does not serve, or not with that scope: %s", strings.Join(differences, ", "),
	)
}

// namespaces returns those that must be there, without those that the case is given or creates itself.
func (a *clusterAPI) namespaces(c *ExpectConfig, given []*clusterGiven) []string {
	needed, own := map[string]bool{}, map[string]bool{}
	for _, entry := range given {
		needed[entry.id.namespace] = true
		if isNamespace(entry.id) {
			own[entry.id.name] = true
		}
	}
	expected := func(group, kind, namespace, name string) {
		needed[namespace] = true
		if isNamespace(objectID{group: group, kind: kind}) {
			own[name] = true
		}
	}
	for _, obj := range c.ExpectCreates {
		if obj, err := unwrap(obj); err == nil {
			kind := c.kindOf(obj)
			expected(kind.Group, kind.Kind, obj.GetNamespace(), obj.GetName())
		}
	}
	for _, ref := range c.ExpectApplies {
		expected(ref.Group, ref.Kind, ref.Namespace, ref.Name)
	}
	delete(needed, "")
	for name := range own {
		delete(needed, name)
	}
	return slices.Sorted(maps.Keys(needed))
}
