// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// reduced are the options of a manager whose cache has less of each object.
var reduced = ctrl.Options{Cache: cache.Options{DefaultTransform: reconcilers.CacheTransform()}}

// What the cache leaves out stays on the API server, also when the child is updated.
func TestCacheTransform_KeepsWhatKubectlHasApplied(t *testing.T) {
	const applied = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child"},"data":{"from":"kubectl"}}`
	e := newEnv(t)
	var cached client.Reader
	e.startWith(reduced, root(fieldNamed(func(r *configMapChild) {
		r.MergeBeforeUpdate = func(current, desired *corev1.ConfigMap) {
			current.Data = reconcilers.MergeMaps(current.Data, desired.Data)
		}
	})), func(_ context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		cached = mgr.GetClient()
		return nil
	})
	parent := newResource("it", map[string]string{"name": "child", "value": "first"})
	e.Add(parent)
	child := newConfigMap("child", nil)
	until(e, child, func(m *corev1.ConfigMap) error {
		if m.Data["value"] != "first" {
			return errors.New("the child was not created yet")
		}
		return nil
	})
	change(e, child, func(m *corev1.ConfigMap) {
		m.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: applied, "example.com/kept": "yes"}
		m.Data["from"] = "kubectl"
	})
	e.Eventually(func() error {
		inCache := &corev1.ConfigMap{}
		if err := cached.Get(e.Context(), client.ObjectKeyFromObject(child), inCache); err != nil {
			return err
		}
		if inCache.Data["from"] == "" {
			return errors.New("the cache has not received the change")
		}
		want := map[string]string{corev1.LastAppliedConfigAnnotation: "", "example.com/kept": "yes"}
		if diff := cmp.Diff(want, inCache.Annotations); diff != "" {
			t.Errorf("annotations in the cache (-want +got):\n%s", diff)
		}
		if len(inCache.ManagedFields) > 0 {
			t.Errorf("the cache has managed fields: %v", inCache.ManagedFields)
		}
		return nil
	})
	e.setField(parent, "value", "second")
	until(e, child, func(m *corev1.ConfigMap) error {
		if m.Data["value"] != "second" {
			return errors.New("the child was not updated yet")
		}
		want := map[string]string{corev1.LastAppliedConfigAnnotation: applied, "example.com/kept": "yes"}
		if diff := cmp.Diff(want, m.Annotations); diff != "" {
			t.Errorf("annotations on the API server (-want +got):\n%s", diff)
		}
		if m.Data["from"] != "kubectl" || len(m.ManagedFields) < 2 {
			t.Errorf("data %v, managed fields %v", m.Data, m.ManagedFields)
		}
		return nil
	})
}

// Who has made a child is read from the API server, if the cache does not have it.
func TestCacheTransform_DeletesOnlyWhatTheControllerHasMade(t *testing.T) {
	e := newEnv(t)
	parent := newResource("it", map[string]string{"children": "de en"})
	e.Add(parent)
	e.addForeign(parent, "precious")
	e.startWith(reduced, root(languages()))
	e.untilNamed("it-de", "it-en", "precious")
	e.setField(parent, "children", "en")
	e.untilNamed("it-en", "precious")
	e.wantTexts(e.eventAbout(parent, "UnidentifiedChildren"), "OurChild", "precious")
	if got := e.configMaps()["precious"].Data["password"]; got != "secret" {
		t.Errorf("the object of another client has the password %q", got)
	}
}

// An application needs the managed fields, and reads them from the API server: the fields that the controller no longer
// desires are removed, and the fields of other clients stay.
func TestCacheTransform_WithServerSideApply(t *testing.T) {
	e := newEnv(t)
	e.startWith(reduced, root(&configMapChild{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			child := newConfigMap("child", parent.Spec.Fields)
			child.Namespace = parent.Namespace
			return child, nil
		},
		ChildObjectManager:         &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
	}))
	parent := newResource("it", map[string]string{"a": "1", "b": "1"})
	e.Add(parent)
	child := newConfigMap("child", nil)
	untilData := func(want map[string]string) {
		t.Helper()
		want["Defaulter"] = "ran" // the default of the parent
		until(e, child, func(m *corev1.ConfigMap) error {
			if diff := cmp.Diff(want, m.Data); diff != "" {
				return errors.New("data (-want +got):\n" + diff)
			}
			return nil
		})
	}
	untilData(map[string]string{"a": "1", "b": "1"})
	change(e, child, func(m *corev1.ConfigMap) {
		m.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		m.Data["c"] = "by hand"
	})
	change(e, parent, func(r *fixture.Resource) { delete(r.Spec.Fields, "b") })
	untilData(map[string]string{"a": "1", "c": "by hand"})
	if got := child.Annotations[corev1.LastAppliedConfigAnnotation]; got != "{}" {
		t.Errorf("the annotation is %q", got)
	}
}

// The member with the desired name is kept, whether or not the cache knows who has made it.
func TestCacheTransform_KeepsTheNamedOfTwoMembers(t *testing.T) {
	e := newEnv(t)
	parent := newResource("it", map[string]string{"children": "en"})
	e.Add(parent)
	stop := e.startWith(reduced, root(languages()))
	e.untilNamed("it-en")
	stop()
	member := e.configMaps()["it-en"]
	twin := newConfigMap("twin", member.Data)
	twin.Namespace, twin.Labels, twin.OwnerReferences = member.Namespace, member.Labels, member.OwnerReferences
	e.Must(e.Create(e.Context(), twin, client.FieldOwner(member.ManagedFields[0].Manager)))
	e.startWith(reduced, root(languages()))
	e.untilNamed("it-en")
	if got := e.configMaps()["it-en"].UID; got != member.UID {
		t.Errorf("the member was replaced: it has the UID %s, want %s", got, member.UID)
	}
}
