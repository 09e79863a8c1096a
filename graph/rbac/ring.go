// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/graph"
)

// ControllerRing is the manifest by which the sharder of github.com/timebertt/kubernetes-controller-sharding knows the
// replicas of a program and the kinds that it divides among them, see package trueup.dev/shards.
type ControllerRing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ControllerRingSpec `json:"spec"`
}

// ControllerRingSpec is the content of a [ControllerRing].
type ControllerRingSpec struct {
	// Resources are the kinds that the controllers reconcile.
	Resources []RingResource `json:"resources"`
}

// GroupResource names a resource, as in a manifest.
type GroupResource struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
}

// RingResource is a kind that controllers reconcile.
type RingResource struct {
	GroupResource `json:",inline"`
	// ControlledResources are the kinds of its children, which move with their parent.
	ControlledResources []GroupResource `json:"controlledResources,omitempty"`
}

// NewControllerRing returns the ring of a program. It has the kinds of all controllers that reconcile more than one
// resource, with the kinds of their children. The error lists kinds whose group is unknown.
func NewControllerRing(name string, g *graph.Graph, o Options) (*ControllerRing, error) {
	ring := &ControllerRing{
		TypeMeta:   metav1.TypeMeta{APIVersion: "sharding.timebertt.dev/v1alpha1", Kind: "ControllerRing"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: ControllerRingSpec{Resources: []RingResource{}},
	}
	var problems []error
	for _, root := range g.Controllers {
		if !isDivided(root) {
			continue
		}
		main, err := o.groupResource(*root.Resource)
		if err != nil {
			problems = append(problems, fmt.Errorf("ring: %s: %w", cmp.Or(root.Path, root.Type), err))
			continue
		}
		resources := &ring.Spec.Resources
		i := slices.IndexFunc(*resources, func(r RingResource) bool { return r.GroupResource == main })
		if i < 0 {
			i = len(*resources)
			*resources = append(*resources, RingResource{GroupResource: main})
		}
		children, err := o.children(root)
		problems = append(problems, err)
		for _, child := range children {
			if controlled := &(*resources)[i].ControlledResources; !slices.Contains(*controlled, child) {
				*controlled = append(*controlled, child)
			}
		}
	}
	slices.SortFunc(ring.Spec.Resources, func(a, b RingResource) int { return compare(a.GroupResource, b.GroupResource) })
	for _, resource := range ring.Spec.Resources {
		slices.SortFunc(resource.ControlledResources, compare)
	}
	return ring, errors.Join(problems...)
}

func compare(a, b GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// isDivided reports whether the resources of a root can be divided among replicas.
func isDivided(root *graph.Node) bool {
	return root.Resource != nil && root.Webhook == "" && root.Type != "reconcilers.AggregateReconciler"
}

// children returns the kinds that the reconcilers of a root control, in the cluster of the resource.
func (o Options) children(root *graph.Node) (children []GroupResource, _ error) {
	var problems []error
	nodes := &graph.Graph{Controllers: []*graph.Node{root}}
	for n := range nodes.All() {
		for _, kind := range n.Owns {
			if !slices.ContainsFunc(n.Access, func(a graph.Access) bool { return a.Kind == kind && a.Config == "" }) {
				continue // in another cluster
			}
			child, err := o.groupResource(kind)
			if err != nil {
				problems = append(problems, fmt.Errorf("ring: %s: %w", cmp.Or(n.Path, n.Type), err))
				continue
			}
			children = append(children, child)
		}
	}
	return children, errors.Join(problems...)
}

func (o Options) groupResource(kind graph.Kind) (GroupResource, error) {
	resource, err := o.resource(graph.Access{Kind: kind})
	return GroupResource{Group: kind.Group, Resource: resource}, err
}

// SharderRole returns the permissions that the sharder needs for the ring. Bind the role to its service account.
func (r *ControllerRing) SharderRole() *rbacv1.ClusterRole {
	set := Permissions{}
	for _, resource := range r.Spec.Resources {
		for _, divided := range append([]GroupResource{resource.GroupResource}, resource.ControlledResources...) {
			for _, verb := range []string{"list", "patch"} {
				set[Permission{Group: divided.Group, Resource: divided.Resource, Verb: verb}] = true
			}
		}
	}
	return set.ClusterRole("sharding:controllerring:" + r.Name)
}
