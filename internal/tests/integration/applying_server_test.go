// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// TestAppliedObjects_ChangedByAWebhook applies an object whose fields a webhook changes. The manager remembers what the
// server makes of it; after a restart it has to apply it once more to know.
func TestAppliedObjects_ChangedByAWebhook(t *testing.T) {
	e := newEnv(t)
	e.mutate(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(_ context.Context, r *fixture.Resource) error {
			if r.Spec.Fields["mode"] != "" {
				r.Spec.Fields["mode"] = "rewritten"
			}
			r.Spec.Fields["seen"] = "yes"
			return nil
		},
	})
	desired := newResource("child", map[string]string{"mode": "desired"})
	desired.Namespace = e.Namespace
	a := newApplier(e, &fixture.Resource{}, nil)
	a.writes(1, desired, "creation")
	a.writes(0, desired, "afterwards")
	change(e, desired.DeepCopy(), func(r *fixture.Resource) { r.Labels = map[string]string{"by": "hand"} })
	a.writes(0, desired, "after another client added a label")
	a.restart(&fixture.Resource{})
	a.writes(1, desired, "after a restart")
	a.writes(0, desired, "at the end")
	desired.Spec.Fields["other"] = "new"
	a.writes(1, desired, "after a change of the desired object")
	a.writes(0, desired, "after that")
}

// TestAppliedObjects_OfAController runs a controller with an applied child, whose managed fields are in the cache or
// are stripped from it. It repairs what another client changes, and sends nothing else.
func TestAppliedObjects_OfAController(t *testing.T) {
	t.Parallel()
	for name, transform := range map[string]cache.Options{
		"all":                     {},
		"stripped managed fields": {DefaultTransform: cache.TransformStripManagedFields()},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			applied := func() setup {
				return root(&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
					DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
						m := newConfigMap(parent.Name, parent.Spec.Fields)
						m.Namespace = parent.Namespace
						return m, nil
					},
					ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
						Conflicts: reconcilers.ForceOnConflict,
					},
					ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, _ error) {
						if child != nil {
							parent.Status.Fields = child.Data
						}
					},
				})
			}
			options := ctrl.Options{Cache: transform}
			stop := e.startWith(options, applied())
			parent := newResource("parent", map[string]string{"a": "1"})
			parent.Namespace = e.Namespace
			e.Add(parent)
			child := newConfigMap("parent", nil)
			child.Namespace = e.Namespace
			until(e, child, func(m *corev1.ConfigMap) error {
				if m.Data["a"] != "1" || len(m.OwnerReferences) != 1 || len(m.ManagedFields) != 1 {
					return errors.New("not applied yet")
				}
				return nil
			})
			if owner := child.ManagedFields[0].Manager; owner != "trueup/resource.fixture.trueup.dev@ed3488e6" {
				t.Errorf("field owner %q", owner)
			}
			change(e, child, func(m *corev1.ConfigMap) { m.Data["a"], m.Data["b"] = "by hand", "by hand" })
			until(e, child, func(m *corev1.ConfigMap) error {
				if m.Data["a"] != "1" || m.Data["b"] != "by hand" {
					return errors.New("not repaired yet")
				}
				return nil
			})
			stop()

			e.startWith(options, applied())
			change(e, parent, func(r *fixture.Resource) { r.Spec.Fields["c"] = "1" })
			until(e, child, func(m *corev1.ConfigMap) error {
				if m.Data["c"] != "1" {
					return errors.New("not applied yet")
				}
				return nil
			})
		})
	}
}

// Does a webhook make a change of an applied child vanish? It keeps the old value for a while.
func TestAppliedObjects_WhatAWebhookKeeps(t *testing.T) {
	e := newEnv(t)
	var keeps atomic.Bool
	e.mutate(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(ctx context.Context, r *fixture.Resource) error {
			if r.Name == "probe" {
				r.Spec.Fields["seen"] = "yes"
			}
			old := &fixture.Resource{}
			if raw := reconcilers.RetrieveAdmissionRequest(ctx).OldObject.Raw; keeps.Load() && r.Name == "child" && raw != nil {
				if err := json.Unmarshal(raw, old); err != nil {
					return err
				}
				r.Spec = old.Spec
			}
			return nil
		},
	})
	e.start(root(&reconcilers.ChildReconciler[*fixture.Resource, *fixture.Resource, *fixture.ResourceList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*fixture.Resource, error) {
			if parent.Name != "parent" {
				return nil, nil
			}
			child := newResource("child", map[string]string{"mode": parent.Spec.Fields["mode"]})
			child.Namespace = parent.Namespace
			return child, nil
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*fixture.Resource]{},
		ReflectChildStatusOnParent: func(_ context.Context, parent, child *fixture.Resource, err error) {
			switch {
			case err != nil:
				parent.Status.Fields = map[string]string{"reflected": err.Error()}
			case child != nil:
				parent.Status.Fields = map[string]string{"reflected": child.Spec.Fields["mode"]}
			}
		},
	}))
	parent, child := newResource("parent", map[string]string{"mode": "old"}), newResource("child", nil)
	parent.Namespace, child.Namespace = e.Namespace, e.Namespace
	reflects := func(want string) {
		t.Helper()
		until(e, parent, func(r *fixture.Resource) error {
			if got := r.Status.Fields["reflected"]; !strings.Contains(got, want) {
				return fmt.Errorf("%q is reflected, want %q", got, want)
			}
			return nil
		})
	}
	e.Add(parent)
	reflects("old")
	keeps.Store(true)
	change(e, parent, func(r *fixture.Resource) { r.Spec.Fields["mode"] = "new" })
	reflects("kept the old values, a webhook may do this: spec.fields.mode")
	e.events("parent", "UpdateFailed")
	keeps.Store(false)
	e.touch(child)
	reflects("new")
}
