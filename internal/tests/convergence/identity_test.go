// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// there checks which ConfigMaps exist: their names without what the API server has generated, and "!" if the resource
// does not control them.
func there(want ...string) converge.Step {
	return converge.Do("there are "+strings.Join(want, ", "), func(ctx context.Context, c client.Client) error {
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list); err != nil {
			return err
		}
		var got []string
		for _, cm := range list.Items {
			name := cm.Name
			if cm.GenerateName != "" {
				name = cm.GenerateName
			}
			if metav1.GetControllerOf(&cm) == nil {
				name += "!"
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		return nil
	})
}

// foreign is an object of the kind of the children that another client creates.
func foreign() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "foreign"}}
}

// labelOfEach changes a label of each child, or removes it.
func labelOfEach(resource *fixture.Resource, key, value string) converge.Step {
	return converge.ChangeOwned(resource, &corev1.ConfigMap{}, "label "+key+"="+value, func(cm *corev1.ConfigMap) {
		if metav1.SetMetaDataLabel(&cm.ObjectMeta, key, value); value == "" {
			delete(cm.Labels, key)
		}
	})
}

// others are what users and other clients do to the children, with what exists afterwards. extra are those that are
// needed at first.
func others(resource *fixture.Resource, key string, children ...string) map[string][]converge.Step {
	settled := func(steps ...converge.Step) []converge.Step {
		return slices.Concat(steps, converge.Steps(converge.Settle()))
	}
	with := func(more ...string) converge.Step {
		all := slices.Concat(children, more)
		slices.Sort(all)
		return there(all...)
	}
	begin := settled(converge.Apply(resource), converge.Settle(), with())
	end := settled(converge.Delete(resource))
	changed := settled(converge.Change(resource, setField("value", "two")))
	none := settled(converge.Change(resource, setField("childless", "yes")))
	some := settled(converge.Change(resource, setField("childless", "")))
	edited := func(value string) []converge.Step {
		return slices.Concat(begin, settled(labelOfEach(resource, key, value)), changed, settled(with()), none,
			settled(there()), some, settled(with()), end)
	}
	created := func(owner client.Object, left ...string) []converge.Step {
		return slices.Concat(begin, settled(converge.CreateOwned(owner, foreign(), "kubectl")), settled(with(left...)),
			changed, settled(with(left...)), none, settled(there(left...)), some, settled(with(left...)),
			settled(converge.Delete(foreign())), end)
	}
	kept := make([]string, len(children))
	for i, child := range children {
		kept[i] = child + "!"
	}
	return map[string][]converge.Step{
		"a label is removed":                      edited(""),
		"a label is changed":                      edited("other"),
		"a label is changed to that of a sibling": edited("x"),
		"orphaned": slices.Concat(begin, settled(converge.Orphan(resource)), settled(there(kept...)),
			settled(converge.Do("clean up", func(ctx context.Context, c client.Client) error {
				return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(resource.Namespace))
			}))),
		"another client creates one of the resource": created(resource, "foreign"),
		"another client creates one":                 created(nil, "foreign!"),
		"paused": slices.Concat(begin, settled(pauseOf(resource, "yes")), settled(labelOfEach(resource, key, "other")),
			settled(with()), settled(pauseOf(resource, "")), settled(with()), changed, settled(with()), end),
	}
}

// paused pauses a reconciler of children.
func paused(reconciler sub) sub {
	return &reconcilers.Paused[*fixture.Resource]{Reconciler: reconciler}
}

// TestIdentity proves that the children of a resource are managed, and nothing else is, whatever users and other
// clients do to them.
func TestIdentity(t *testing.T) {
	single := func(name func(*corev1.ConfigMap), change func(*child)) func() sub {
		return func() sub {
			c := newChild(func(cm *corev1.ConfigMap) {
				name(cm)
				cm.Labels = map[string]string{"id": "x"}
			})
			if change != nil {
				change(c)
			}
			return c
		}
	}
	set := func(name func(child *corev1.ConfigMap, id string)) func() sub {
		return func() sub {
			s := newChildSet(name)
			desired := s.DesiredChildren
			s.DesiredChildren = func(ctx context.Context, r *fixture.Resource) ([]*corev1.ConfigMap, error) {
				if r.Spec.Fields["childless"] != "" {
					return nil, nil
				}
				return desired(ctx, r)
			}
			return s
		}
	}
	for name, tc := range map[string]struct {
		build    func() sub
		children []string
	}{
		"child, fixed name":     {single(fixedName, nil), []string{"child"}},
		"child, generated name": {single(generatedName, nil), []string{"child-"}},
		"child, applied": {single(fixedName, func(c *child) {
			c.MergeBeforeUpdate, c.ChildObjectManager = nil, &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
				Conflicts: reconcilers.ForceOnConflict, // users change labels that it applies
			}
		}), []string{"child"}},
		"child, pruned": {func() sub {
			return &reconcilers.Prune[*fixture.Resource]{Inventory: inventory, Reconciler: single(fixedName, nil)()}
		}, []string{"child"}},
		"child, pruned, with a finalizer": {func() sub {
			return protected(&reconcilers.Prune[*fixture.Resource]{
				Inventory: inventory, Reconciler: single(fixedName, nil)(),
			})
		}, []string{"child"}},
		"set, fixed names": {
			set(func(child *corev1.ConfigMap, id string) { child.Name = "child-" + id }), []string{"child-x", "child-y"},
		},
		"set, generated names": {
			set(func(child *corev1.ConfigMap, id string) { child.GenerateName = "child-" + id + "-" }),
			[]string{"child-x-", "child-y-"},
		},
	} {
		resource := newResource("one")
		setField("children", "x y")(resource)
		for what, steps := range others(resource, "id", tc.children...) {
			t.Run(name+"/"+what, func(t *testing.T) {
				s := under(t, func(converge.Env) sub { return paused(tc.build()) })
				s.ManagedFields, s.Steps = true, steps
				if what == "paused" {
					s.Without = map[converge.Fault]string{converge.FaultChildDeleted: "a paused resource restores nothing"}
				}
				generated := strings.HasSuffix(tc.children[0], "-")
				switch {
				case generated && what == "orphaned":
					s.Off = map[converge.Oracle]string{converge.OracleDuplicates: "a cache that lacks the deletion shows a resource " +
						"that has lost its child, and the new child is released like the first one"}
				case generated && len(tc.children) > 1:
					s.Off = map[converge.Oracle]string{converge.OracleDuplicates: "only its label tells which child of a set has " +
						"a generated name: it is replaced, also while its predecessor cannot be deleted"}
				}
				proveWith(t, s, 2_000)
			})
		}
	}
}

// TestIdentity_Renamed proves that a child whose name changes is replaced, and an object of another client is not.
func TestIdentity_Renamed(t *testing.T) {
	s := under(t, func(converge.Env) sub { return renamedChild() })
	resource := newResource("one")
	setField("name", "a")(resource)
	s.ManagedFields = true
	s.Steps = converge.Steps(converge.Apply(resource), converge.Settle(), there("child-a"),
		converge.CreateOwned(resource, foreign(), "kubectl"), converge.Settle(), there("child-a", "foreign"),
		converge.Change(resource, setField("name", "b")), converge.Settle(), there("child-b", "foreign"),
		converge.Change(resource, setField("name", "a")), converge.Settle(), there("child-a", "foreign"),
		converge.Delete(resource), converge.Settle(), there())
	prove(t, s)
}

// TestIdentity_CacheWithoutChildren proves that a child which the cache does not have is created once and follows its
// parent, also if the API server generates its name.
func TestIdentity_CacheWithoutChildren(t *testing.T) {
	for name, named := range map[string]func(*corev1.ConfigMap){"child": fixedName, "child-": generatedName} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(converge.Env) sub { return newChild(named) })
			s.ManagedFields = true
			s.CacheSelectors = []converge.CacheSelector{{
				Object: &corev1.ConfigMap{}, Label: labels.SelectorFromSet(labels.Set{"cached": "yes"}),
			}}
			resource := newResource("one")
			s.Steps = converge.Steps(converge.Apply(resource), converge.Settle(), there(name),
				converge.Change(resource, setField("value", "two")), converge.Settle(), there(name),
				converge.Delete(resource), converge.Settle(), there())
			prove(t, s)
		})
	}
}
