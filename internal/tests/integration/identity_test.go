// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type configMapSet = reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// fieldNamed returns a reconciler of the ConfigMap that the field "name" names, or with the prefix in the field
// "prefix". The field "value" is its data.
func fieldNamed(edits ...func(*configMapChild)) *configMapChild {
	r := &configMapChild{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			name, prefix := parent.Spec.Fields["name"], parent.Spec.Fields["prefix"]
			if name == "" && prefix == "" {
				return nil, nil
			}
			child := newConfigMap(name, map[string]string{"value": parent.Spec.Fields["value"]})
			child.Namespace, child.GenerateName = parent.Namespace, prefix
			child.Labels = map[string]string{"role": "config"}
			return child, nil
		},
		MergeBeforeUpdate: mergeLabelsAndData,
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, err error) {
			parent.Status.Fields = map[string]string{"result": "none"}
			switch {
			case err != nil:
				parent.Status.Fields["result"] = string(apierrs.ReasonForError(err))
			case child != nil:
				parent.Status.Fields["result"] = child.Data["value"]
			}
		},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// languages returns a reconciler of a ConfigMap for each word in the field "children", with the word as its label "id".
func languages(edits ...func(*configMapSet)) *configMapSet {
	r := &configMapSet{
		DesiredChildren: func(_ context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			children := []*corev1.ConfigMap{}
			for id := range strings.FieldsSeq(parent.Spec.Fields["children"]) {
				child := newConfigMap(parent.Name+"-"+id, map[string]string{"value": parent.Spec.Fields["value"]})
				child.Namespace, child.Labels = parent.Namespace, map[string]string{"id": id}
				children = append(children, child)
			}
			return children, nil
		},
		IdentifyChild:     func(child *corev1.ConfigMap) string { return child.Labels["id"] },
		MergeBeforeUpdate: mergeLabelsAndData,
		ReflectChildrenStatusOnParent: func(
			_ context.Context, parent *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
			parent.Status.Fields = map[string]string{"result": "ok"}
			if err := result.AggregateError(); err != nil {
				parent.Status.Fields["result"] = err.Error()
			}
		},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func mergeLabelsAndData(current, desired *corev1.ConfigMap) {
	current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
	current.Data = desired.Data
}

// configMaps returns the ConfigMaps of the namespace by name, without the ConfigMaps of Kubernetes.
func (e *env) configMaps() map[string]corev1.ConfigMap {
	e.Helper()
	list := &corev1.ConfigMapList{}
	e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace)))
	found := map[string]corev1.ConfigMap{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item
		}
	}
	return found
}

// untilNamed waits until these ConfigMaps exist, and no others.
func (e *env) untilNamed(names ...string) {
	e.Helper()
	e.Eventually(func() error {
		if diff := cmp.Diff(names, slices.Sorted(maps.Keys(e.configMaps()))); diff != "" {
			return errors.New("ConfigMaps (-want +got):\n" + diff)
		}
		return nil
	})
}

// addForeign creates a ConfigMap that parent controls as another client.
func (e *env) addForeign(parent *fixture.Resource, name string) *corev1.ConfigMap {
	e.Helper()
	foreign := newConfigMap(name, map[string]string{"password": "secret"})
	foreign.Namespace = e.Namespace
	foreign.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource")),
	}
	e.Must(e.Create(e.Context(), foreign))
	return foreign
}

func (e *env) setField(parent *fixture.Resource, key, value string) {
	e.Helper()
	change(e, parent, func(r *fixture.Resource) {
		r.Spec.Fields = reconcilers.MergeMaps(r.Spec.Fields, map[string]string{key: value})
	})
}

// kubectl delete --cascade=orphan leaves the children, whichever reconciler manages them.
func TestOrphanedChildrenStay(t *testing.T) {
	t.Parallel()
	for name, reconciler := range map[string]reconcilers.SubReconciler[*fixture.Resource]{
		"child": fieldNamed(), "set": languages(),
		"steps": &reconcilers.Steps[*fixture.Resource]{Steps: []reconcilers.Step[*fixture.Resource]{
			{Name: "one", Reconciler: fieldNamed()},
		}},
		"prune": &reconcilers.Prune[*fixture.Resource]{Inventory: "example.com/inventory", Reconciler: fieldNamed()},
		"recreating": fieldNamed(func(r *configMapChild) {
			r.ChildObjectManager = &reconcilers.RecreatingObjectManager[*corev1.ConfigMap]{
				Manager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{MergeBeforeUpdate: mergeLabelsAndData},
			}
			r.MergeBeforeUpdate = nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.start(root(reconciler))
			parent := newResource("it", map[string]string{"name": "it-en", "children": "en"})
			// A finalizer keeps the parent until the reconciler has had time to do harm.
			parent.Finalizers = []string{"example.com/hold"}
			e.Add(parent)
			e.untilNamed("it-en")
			uid := e.configMaps()["it-en"].UID
			e.Must(e.Delete(e.Context(), parent, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			e.Eventually(func() error { // the garbage collector has removed the owner references
				return want(0, len(e.childrenOf("it")))
			})
			e.touch(parent)
			change(e, parent, func(r *fixture.Resource) { r.Finalizers = nil })
			e.WaitForDeletion(parent)
			e.untilNamed("it-en")
			if got := e.configMaps()["it-en"]; got.UID != uid || len(got.OwnerReferences) != 0 {
				t.Errorf("the child is %s with owners %v, want %s without", got.UID, got.OwnerReferences, uid)
			}
		})
	}
}

// What another client made for the parent is neither deleted nor changed. There is one warning that names it.
func TestForeignObjectsOfTheParentStay(t *testing.T) {
	t.Parallel()
	withName := map[string]string{"name": "child"}
	for name, tc := range map[string]struct {
		reconciler reconcilers.SubReconciler[*fixture.Resource]
		foreign    []string
		fields     map[string]string
		then       []string // exist in the end, besides foreign
	}{
		"one, and none desired": {fieldNamed(), []string{"precious"}, map[string]string{}, nil},
		"two, and none desired": {fieldNamed(), []string{"precious", "token"}, map[string]string{}, nil},
		"beside a child":        {fieldNamed(), []string{"precious"}, withName, []string{"child"}},
		"with the prefix":       {fieldNamed(), []string{"precious"}, map[string]string{"prefix": "pre"}, []string{"pre"}},
		"a set without ids": {
			languages(), []string{"precious"}, map[string]string{"children": "en"}, []string{"it-en"},
		},
		"an empty set":             {languages(), []string{"precious", "token"}, map[string]string{}, nil},
		"of the desired namespace": {fieldNamed(inOwnNamespace), []string{"precious"}, withName, []string{"child"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			parent := newResource("it", tc.fields)
			e.Add(parent)
			uids := map[string]any{}
			for _, name := range tc.foreign {
				uids[name] = e.addForeign(parent, name).UID
			}
			e.start(root(tc.reconciler))
			text := e.eventAbout(parent, "UnidentifiedChildren")
			e.wantTexts(text, append([]string{"OurChild"}, tc.foreign...)...)
			e.Eventually(func() error { return want(len(tc.foreign)+len(tc.then), len(e.configMaps())) })
			e.setField(parent, "value", "changed")
			until(e, parent, func(r *fixture.Resource) error { return want(r.Generation, r.Status.ObservedGeneration) })
			got := e.configMaps()
			for name, uid := range uids {
				if got[name].UID != uid || got[name].Data["password"] != "secret" {
					t.Errorf("%s is %v", name, got[name])
				}
			}
			if len(got) != len(tc.foreign)+len(tc.then) {
				t.Errorf("%d ConfigMaps exist: %v", len(got), slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

func inOwnNamespace(r *configMapChild) {
	r.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
		return []client.ListOption{client.InNamespace(parent.Namespace)}
	}
}

// A user edits the label that identifies a member of a set. The member is repaired in place, and the others follow.
func TestMemberWhoseLabelIsEdited(t *testing.T) {
	t.Parallel()
	labeled := func(r *configMapSet) {
		r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "" }
	}
	adopting := func(r *configMapSet) {
		r.Adopt = func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return true }
	}
	selecting := func(r *configMapSet) {
		r.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace(parent.Namespace), client.HasLabels{"id"}}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*configMapSet)
		to   string
	}{
		"a later id": {nil, "zz"}, "an earlier id": {nil, "aa"}, "removed": {nil, ""}, "another's": {nil, "fr"},
		"OurChild, later": {labeled, "zz"}, "OurChild, removed": {labeled, ""}, "OurChild, another's": {labeled, "fr"},
		"Adopt, removed": {adopting, ""}, "Adopt, earlier": {adopting, "aa"},
		"ListOptions, removed": {selecting, ""}, "ListOptions, another's": {selecting, "fr"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			set := languages()
			if tc.edit != nil {
				tc.edit(set)
			}
			e.start(root(set))
			parent := newResource("it", map[string]string{"children": "en fr"})
			e.Add(parent)
			e.untilNamed("it-en", "it-fr")
			before := e.configMaps()
			edited := before["it-en"]
			change(e, &edited, func(child *corev1.ConfigMap) {
				if delete(child.Labels, "id"); tc.to != "" {
					child.Labels = map[string]string{"id": tc.to}
				}
			})
			e.setField(parent, "value", "new")
			e.Eventually(func() error {
				got := map[string]string{}
				for name, child := range e.configMaps() {
					got[name] = fmt.Sprint(child.Labels["id"], child.Data["value"], child.UID)
				}
				return errorOf(cmp.Diff(map[string]string{
					"it-en": fmt.Sprint("en", "new", before["it-en"].UID), "it-fr": fmt.Sprint("fr", "new", before["it-fr"].UID),
				}, got))
			})
			until(e, parent, resultIs("ok"))
		})
	}
}

func errorOf(diff string) error {
	if diff == "" {
		return nil
	}
	return errors.New("(-want +got):\n" + diff)
}

// A new version of the controller gives the members other ids: they are the same objects.
func TestUpgradeThatChangesIDs(t *testing.T) {
	e := newEnv(t)
	stop := e.start(root(languages()))
	parent := newResource("it", map[string]string{"children": "en fr"})
	e.Add(parent)
	e.untilNamed("it-en", "it-fr")
	before := e.configMaps()
	stop()
	e.start(root(languages(func(r *configMapSet) {
		old := r.DesiredChildren
		r.DesiredChildren = func(ctx context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			children, err := old(ctx, parent)
			for _, child := range children {
				child.Labels["id"] = "language-" + child.Labels["id"]
			}
			return children, err
		}
	})))
	e.Eventually(func() error {
		got := map[string]string{}
		for name, child := range e.configMaps() {
			got[name] = fmt.Sprint(child.Labels["id"], child.UID)
		}
		return errorOf(cmp.Diff(map[string]string{
			"it-en": fmt.Sprint("language-en", before["it-en"].UID), "it-fr": fmt.Sprint("language-fr", before["it-fr"].UID),
		}, got))
	})
}

// A renamed child is created with the new name, and then the old one is deleted.
func TestRenamedChild(t *testing.T) {
	t.Parallel()
	byLabel := func(r *configMapChild) {
		r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["role"] == "config" }
	}
	t.Run("by name", func(t *testing.T) {
		e := newEnv(t)
		e.start(root(fieldNamed()))
		parent := newResource("it", map[string]string{"name": "old"})
		e.Add(parent)
		e.untilNamed("old")
		e.setField(parent, "name", "new")
		e.untilNamed("new")
		e.setField(parent, "name", "")
		e.untilNamed()
		until(e, parent, resultIs("none"))
	})
	t.Run("OurChild", func(t *testing.T) { // the compatible API keeps the name
		e := newEnv(t)
		e.start(root(fieldNamed(byLabel)))
		parent := newResource("it", map[string]string{"name": "old"})
		e.Add(parent)
		e.untilNamed("old")
		e.setField(parent, "name", "new")
		e.wantTexts(e.eventAbout(parent, "ChildHasOtherName"), `"old"`, `"new"`)
		e.untilNamed("old")
		e.setField(parent, "name", "")
		e.untilNamed()
	})
	t.Run("from a generated name", func(t *testing.T) {
		e := newEnv(t)
		e.start(root(fieldNamed()))
		parent := newResource("it", map[string]string{"prefix": "made-"})
		e.Add(parent)
		e.Eventually(func() error { return want(1, len(e.configMaps())) })
		change(e, parent, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"name": "new"} })
		e.untilNamed("new")
	})
	t.Run("what may hold data", func(t *testing.T) {
		e := newEnv(t)
		secret := secretOf().(*reconcilers.ChildReconciler[*fixture.Resource, *corev1.Secret, *corev1.SecretList])
		desired := secret.DesiredChild
		secret.DesiredChild = func(ctx context.Context, parent *fixture.Resource) (*corev1.Secret, error) {
			child, err := desired(ctx, parent)
			child.Name = parent.Spec.Fields["name"]
			return child, err
		}
		e.start(root(secret))
		parent := newResource("it", map[string]string{"name": "old"})
		e.Add(parent)
		until(e, parent, resultIs("old"))
		e.setField(parent, "name", "new")
		until(e, parent, resultIs("new"))
		e.wantTexts(e.eventAbout(parent, "RenamedChildKept"), "old", "new")
		e.Must(e.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "old"}, &corev1.Secret{}))
	})
}

// The API server uses 58 bytes of a prefix.
func TestLongPrefixOfAGeneratedName(t *testing.T) {
	e := newEnv(t)
	e.start(root(fieldNamed()))
	parent := newResource("it", map[string]string{"prefix": strings.Repeat("x", 60) + "-", "value": "1"})
	e.Add(parent)
	until(e, parent, resultIs("1"))
	for _, value := range []string{"2", "3"} {
		e.setField(parent, "value", value)
		until(e, parent, resultIs(value))
	}
	if got := e.traffic.of("configmaps"); len(got) != 3 {
		t.Errorf("%d writes, want one for each value: %v", len(got), got)
	}
}

// The cache of the manager selects ConfigMaps by a label that the child lacks.
func TestCacheThatLeavesOutTheChild(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]map[string]string{
		"a name": {"name": "child", "value": "1"}, "a generated name": {"prefix": "child-", "value": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			options := ctrl.Options{Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"app": "x"})},
			}}}
			e.startWith(options, func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
				c.StaleReadsTimeout = time.Second
				// Another test counts the time-outs of controllers without a name.
				r := &reconcilers.ResourceReconciler[*fixture.Resource]{
					Name: "left out, " + name, Reconciler: fieldNamed(), Config: c,
				}
				return r.SetupWithManager(ctx, mgr)
			})
			parent := newResource("it", fields)
			e.Add(parent)
			until(e, parent, resultIs("1"))
			for _, value := range []string{"2", "3", "4"} {
				e.setField(parent, "value", value)
				until(e, parent, resultIs(value))
			}
			e.wantTexts(e.eventAbout(parent, "NotInCache"), "ConfigMap", "child", "ByObject")
			if got := e.configMaps(); len(got) != 1 {
				t.Errorf("%d ConfigMaps exist, want one: %v", len(got), slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// What was adopted is released when it is no longer desired, unless the author says otherwise.
func TestAdoptedChildIsReleased(t *testing.T) {
	t.Parallel()
	for name, deletes := range map[string]bool{"by default": false, "Release returns false": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			object, made := newConfigMapIn(e, "adopted"), newConfigMapIn(e, "other")
			e.Add(object, made)
			e.start(root(fieldNamed(func(r *configMapChild) {
				r.Adopt = func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return true }
				if deletes {
					r.Release = func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return false }
				}
			})))
			parent := newResource("it", map[string]string{"name": "adopted", "value": "1"})
			e.Add(parent)
			until(e, parent, resultIs("1"))
			e.setField(parent, "name", "")
			until(e, parent, resultIs("none"))
			if deletes {
				e.untilNamed("other")
				return
			}
			e.untilNamed("adopted", "other")
			e.Eventually(func() error { return want(0, len(e.configMaps()["adopted"].OwnerReferences)) })
		})
	}
}

// Objects that an earlier version made under another field owner, such as the file name of its binary.
func TestUpgradeFromAnotherFieldOwner(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		former []string
		// first is whether the new version manages the child before it is no longer desired.
		first bool
		gone  bool
	}{
		"named":               {[]string{"manager"}, false, true},
		"managed before":      {nil, true, true},
		"neither":             {nil, false, false},
		"of another program":  {[]string{"websites"}, false, false},
		"a generated name":    {nil, true, true},
		"named, as a set":     {[]string{"manager"}, false, true},
		"not named, as a set": {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			fields := map[string]string{"name": "it-en", "children": "en", "value": "1"}
			parent := newResource("it", fields)
			e.Add(parent)
			by := "manager"
			old := newConfigMap("it-en", map[string]string{"value": "1"})
			if name == "a generated name" {
				change(e, parent, func(r *fixture.Resource) {
					r.Spec.Fields = map[string]string{"prefix": "it-", "value": "1"}
				})
				old.Name, by = "it-x7k2z", "integration.test"
			}
			old.Namespace, old.Labels = e.Namespace, map[string]string{"id": "en", "role": "config"}
			old.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource")),
			}
			e.Must(e.Create(e.Context(), old, client.FieldOwner(by)))
			var reconciler reconcilers.SubReconciler[*fixture.Resource] = fieldNamed()
			if strings.Contains(name, "set") {
				reconciler = languages()
			}
			if !tc.first {
				change(e, parent, func(r *fixture.Resource) { r.Spec.Fields = nil })
			}
			e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
				return root(reconciler)(ctx, mgr, c.WithFormerFieldOwners(tc.former...))
			})
			if tc.first {
				until(e, parent, resultIs("1"))
				if got := e.traffic.of("configmaps"); len(got) != 0 {
					t.Errorf("the child in sync was written: %v", got)
				}
				change(e, parent, func(r *fixture.Resource) { r.Spec.Fields = nil })
			}
			if tc.gone {
				e.untilNamed()
				return
			}
			e.wantTexts(e.eventAbout(parent, "UnidentifiedChildren"), "it-en", "manager", "WithFormerFieldOwners")
			e.untilNamed("it-en")
		})
	}
}

// A child that the API server refuses does not stop its siblings.
func TestSiblingsOfARefusedChild(t *testing.T) {
	e := newEnv(t)
	e.start(root(languages(func(r *configMapSet) {
		all := r.DesiredChildren
		r.DesiredChildren = func(ctx context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			children, err := all(ctx, parent)
			children[0].Data = map[string]string{"large": strings.Repeat("x", 4<<20)} // the error is not reflected
			return children, err
		}
	})))
	parent := newResource("it", map[string]string{"children": "a b c"})
	e.Add(parent)
	e.untilNamed("it-b", "it-c")
}

// Reconcilers that select the same objects with ListOptions, and a loop, leave the objects of each other alone.
func TestChildrenOfSiblingReconcilersStay(t *testing.T) {
	t.Parallel()
	of := func(field string) func(*configMapChild) {
		return func(r *configMapChild) {
			inOwnNamespace(r)
			r.Name = field
			r.DesiredChild = func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
				if parent.Spec.Fields[field] == "" {
					return nil, nil
				}
				child := newConfigMap(parent.Spec.Fields[field], map[string]string{"value": parent.Spec.Fields["value"]})
				child.Namespace = parent.Namespace
				return child, nil
			}
		}
	}
	cursors := reconcilers.CursorStasher[string]()
	for name, reconciler := range map[string]reconcilers.SubReconciler[*fixture.Resource]{
		"sequence": reconcilers.Sequence[*fixture.Resource]{fieldNamed(of("a")), fieldNamed(of("b"))},
		"loop": &reconcilers.ForEach[*fixture.Resource, string]{
			Items: func(_ context.Context, parent *fixture.Resource) ([]string, error) {
				items := []string{}
				for _, field := range []string{"a", "b"} {
					if name := parent.Spec.Fields[field]; name != "" {
						items = append(items, name)
					}
				}
				return items, nil
			},
			Reconciler: fieldNamed(func(r *configMapChild) {
				r.DesiredChild = func(ctx context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
					child := newConfigMap(cursors.RetrieveOrDie(ctx).Item, map[string]string{"value": parent.Spec.Fields["value"]})
					child.Namespace = parent.Namespace
					return child, nil
				}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.start(root(reconciler))
			parent := newResource("it", map[string]string{"a": "first", "b": "second", "value": "1"})
			e.Add(parent)
			e.untilNamed("first", "second")
			before := e.configMaps()
			e.setField(parent, "value", "2")
			e.Eventually(func() error {
				got := e.configMaps()
				return errorOf(cmp.Diff([]string{"2", "2"}, []string{got["first"].Data["value"], got["second"].Data["value"]}))
			})
			e.setField(parent, "b", "")
			e.setField(parent, "value", "3")
			e.Eventually(func() error { return errorOf(cmp.Diff("3", e.configMaps()["first"].Data["value"])) })
			for name, was := range before {
				if got := e.configMaps()[name]; got.UID != was.UID {
					t.Errorf("%s is %s, and was %s", name, got.UID, was.UID)
				}
			}
		})
	}
}
