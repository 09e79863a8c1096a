// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// rootOfConfigMap is a setup with a controller of Resources that has one ConfigMap as a child, unless name is empty.
func rootOfConfigMap(controller, name string) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		r := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: controller, Config: c,
			Reconciler: &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
					if name == "" {
						return nil, nil
					}
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}, nil
				},
				MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
			},
		}
		return r.SetupWithManager(ctx, mgr)
	}
}

// Without OurChild and ListOptions, the second controller deletes what the first one creates.
func TestTwoRootsOfOneKind(t *testing.T) {
	t.Run("in one manager", func(t *testing.T) {
		e := newEnv(t)
		var refused error
		e.start(rootOfConfigMap("makes", "child"), func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
			refused = rootOfConfigMap("drops", "")(ctx, mgr, c)
			return nil
		})
		if refused == nil {
			t.Fatal("setup returned no error")
		}
		e.wantTexts(refused.Error(),
			`ChildReconciler "ConfigMapChildReconciler" of ResourceReconciler "drops" must implement OurChild or ListOptions`,
			`another reconciler, ChildReconciler "ConfigMapChildReconciler" of ResourceReconciler "makes"`)
	})
	t.Run("in two managers", func(t *testing.T) {
		e := newEnv(t)
		e.start(rootOfConfigMap("makes elsewhere", "child"))
		e.start(rootOfConfigMap("drops elsewhere", ""))
		resource := newResource("it", nil)
		e.Add(resource)
		e.Eventually(func() error {
			var list corev1.EventList
			if err := e.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
				return err
			}
			return errors.Join(
				found(list, "child was created 5 times in ", ": step makes elsewhere.ConfigMapChildReconciler creates it, "+
					"another client deletes it"),
				found(list, "child was deleted 5 times in ", `: "trueup/resource.fixture.trueup.dev@ed3488e6" (Update) creates it, `+
					"step drops elsewhere.ConfigMapChildReconciler deletes it"),
			)
		})
	})
}

// found returns an error unless a Warning event HotLoop has all parts.
func found(list corev1.EventList, parts ...string) error {
	seen := []string{}
	for _, event := range list.Items {
		all := event.Reason == "HotLoop" && event.Type == corev1.EventTypeWarning
		for _, part := range parts {
			all = all && strings.Contains(event.Message, part)
		}
		if all {
			return nil
		}
		seen = append(seen, event.Reason+": "+event.Message)
	}
	return fmt.Errorf("no event HotLoop with %q, only %q", parts, seen)
}
