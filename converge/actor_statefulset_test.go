// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/state"
)

func newStatefulSetOf(replicas int32, image string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	template.Spec.Containers = []corev1.Container{{Name: "db", Image: image}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		},
	}
}

// TestStatefulSetPods compares the Pods and claims at each Settle.
func TestStatefulSetPods(t *testing.T) {
	set := newStatefulSetOf(2, "db:1")
	newImage := Change(set, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "db:2" })
	deletePod := Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0"}})
	both := []string{"db-0 db:1", "db-1 db:1", "data-db-0", "data-db-1"}
	for name, c := range map[string]struct {
		change func(*appsv1.StatefulSet)
		steps  []Step
		want   [][]string
	}{
		"a rolling update and an end": {nil, []Step{newImage, Settle(), Delete(set), Settle()}, [][]string{
			both, {"db-0 db:2", "db-1 db:2", "data-db-0", "data-db-1"}, {"data-db-0", "data-db-1"},
		}},
		"a partition": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		}, []Step{newImage, Settle()}, [][]string{both, {"db-0 db:1", "db-1 db:2", "data-db-0", "data-db-1"}}},
		"on delete": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, []Step{newImage, Settle(), deletePod, Settle()}, [][]string{
			both, both, {"db-0 db:2", "db-1 db:1", "data-db-0", "data-db-1"},
		}},
		"fewer replicas": {nil, []Step{
			Change(set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) }), Settle(),
		}, [][]string{both, {"db-0 db:1", "data-db-0", "data-db-1"}}},
		"claims that are deleted": {func(s *appsv1.StatefulSet) {
			s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
			s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenScaled: "Delete", WhenDeleted: "Delete",
			}
		}, []Step{
			Change(set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) }), Settle(), Delete(set), Settle(),
		}, [][]string{both, {"db-0 db:1", "data-db-0"}, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			created := set.DeepCopy()
			if c.change != nil {
				c.change(created)
			}
			s := secretScenario(func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			})
			s.World = []Actor{StatefulSetPods(), Pods(BecomeReady), PersistentVolumeClaims()}
			s.Steps = append(Steps(Apply(created), Settle()), c.steps...)
			p := mustPlan(t, s)
			o := p.execute(t, nil, p.usual(), nil)
			if len(o.Violations) > 0 {
				t.Fatal(o.Violations)
			}
			for i, want := range c.want {
				if got := podsAndClaims(o.Settled[i]); !slices.Equal(got, want) {
					t.Errorf("Settle %d: got %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func podsAndClaims(s *state.Snapshot) []string {
	var pods, claims []string
	for _, objects := range s.Objects {
		for _, obj := range objects {
			switch obj := obj.(type) {
			case *corev1.Pod:
				pods = append(pods, fmt.Sprintf("%s %s", obj.Name, obj.Spec.Containers[0].Image))
			case *corev1.PersistentVolumeClaim:
				claims = append(claims, obj.Name)
			}
		}
	}
	return append(pods, claims...)
}

// TestStatefulSetPodsOfReconciler has a reconciler that is ready when all Pods of its StatefulSet are.
func TestStatefulSetPodsOfReconciler(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		set := newStatefulSetOf(2, "db:"+string(secret.Data["value"]))
		found := &appsv1.StatefulSet{}
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(set), found)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err != nil {
			if err := controllerutil.SetControllerReference(secret, set, scheme.Scheme); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, e.Client.Create(ctx, set)
		}
		wanted := set.Spec.Template.Spec.Containers[0].Image
		if found.Spec.Template.Spec.Containers[0].Image != wanted {
			found.Spec.Template.Spec.Containers[0].Image = wanted
			return reconcile.Result{}, e.Client.Update(ctx, found)
		}
		ready := fmt.Sprint(found.Status.ObservedGeneration == found.Generation && found.Status.UpdatedReplicas == 2 &&
			found.Status.ReadyReplicas == 2)
		if secret.Labels["ready"] == ready {
			return reconcile.Result{}, nil
		}
		secret.Labels = map[string]string{"ready": ready}
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	})
	s.Owns = []client.Object{&appsv1.StatefulSet{}}
	s.World = []Actor{StatefulSetPods(), Pods(BecomeReady)}
	p := mustPlan(t, s)
	o := p.execute(t, nil, p.usual(), nil)
	if len(o.Violations) > 0 {
		t.Fatal(o.Violations)
	}
	if got := strings.Join(podsAndClaims(o.Settled[1]), ", "); got != "db-0 db:2, db-1 db:2, data-db-0, data-db-1" {
		t.Errorf("after the change: %s", got)
	}
	converges(t, s, Options{Seed: 1})
}
