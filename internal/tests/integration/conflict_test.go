// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// wantTexts fails the test unless the text contains all parts.
func (e *env) wantTexts(text string, parts ...string) {
	e.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			e.Errorf("event: %s\nwant %q in it", text, part)
		}
	}
}

func TestIsItLooping_AnotherControllerWritesTheSameField(t *testing.T) {
	e := newEnv(t)
	e.start(root(&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "child"},
				Data:       map[string]string{"replicas": "1"},
			}, nil
		},
		MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
	}))
	e.Go("autoscaler", func(ctx context.Context) error {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			child := &corev1.ConfigMap{}
			err := e.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: "child"}, child)
			if err != nil || child.Data["replicas"] != "1" {
				continue
			}
			child.Data["replicas"] = "10"
			err = e.Update(ctx, child, client.FieldOwner("autoscaler"))
			if err != nil && !apierrs.IsConflict(err) && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
	resource := newResource("it", nil)
	e.Add(resource)
	text := e.eventAbout(resource, "FieldConflict")
	e.wantTexts(text, "Warning data[replicas] of ConfigMap "+e.Namespace+"/child changed back and forth 5 times",
		`: "trueup/resource.fixture.trueup.dev@ed3488e6" (Update) writes a string of 1 bytes`,
		"in step ResourceResourceReconciler.ConfigMapChildReconciler",
		`, "autoscaler" (Update) writes a string of 2 bytes`)
}

func TestIsItLooping_AWebhookChangesTheField(t *testing.T) {
	e := newEnv(t)
	e.mutate(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(_ context.Context, r *fixture.Resource) error {
			if r.Spec.Fields == nil {
				r.Spec.Fields = map[string]string{}
			}
			r.Spec.Fields["seen"], r.Spec.Fields["mode"] = "yes", "of the webhook"
			return nil
		},
	})
	e.start(root(&reconcilers.SyncReconciler[*fixture.Resource]{
		SyncWithResult: func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
			changed := r.DeepCopy()
			changed.Spec.Fields["mode"] = "mine"
			err := reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, changed)
			r.SetResourceVersion(changed.GetResourceVersion())
			return reconcilers.Result{RequeueAfter: 250 * time.Millisecond}, err
		},
	}))
	resource := newResource("it", nil)
	e.Add(resource)
	text := e.eventAbout(resource, "FieldConflict")
	e.wantTexts(text, "Warning spec.fields[mode] of Resource "+e.Namespace+"/it is not stored as sent, 5 times in",
		`: "integration.test" (Update) sends a string of 4 bytes`,
		", the API server stores a string of 14 bytes", "probably because of a mutating webhook")
}
