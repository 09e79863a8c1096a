// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A webhook inserts a container before the containers that the user merges by name, so the indexes of containers
// differ.
func TestUpdatingObjectManager_ListsMergedByName(t *testing.T) {
	w := newWorld(t)
	w.Admit = func(obj client.Object) {
		d, ok := obj.(*appsv1.Deployment)
		if !ok {
			return
		}
		pod := &d.Spec.Template.Spec
		if !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "sidecar" }) {
			pod.Containers = append([]corev1.Container{{Name: "sidecar", ImagePullPolicy: corev1.PullNever}}, pod.Containers...)
		}
		for i := range pod.Containers {
			if pod.Containers[i].ImagePullPolicy == "" {
				pod.Containers[i].ImagePullPolicy = corev1.PullAlways
			}
		}
	}
	manager := &deployments{MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
		for _, want := range desired.Spec.Template.Spec.Containers {
			containers := &current.Spec.Template.Spec.Containers
			i := slices.IndexFunc(*containers, func(c corev1.Container) bool { return c.Name == want.Name })
			if i < 0 {
				*containers = append(*containers, want)
				continue
			}
			(*containers)[i] = want
		}
	}}
	actual := &appsv1.Deployment{}
	for range 4 {
		desired := wantedDeployment("image")
		desired.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "app"}, {Name: "b", ImagePullPolicy: corev1.PullNever},
		}
		if exists := actual.Name != ""; exists {
			actual = stored(w, actual)
		}
		var err error
		actual, err = manager.Manage(w.Context(), newResource(), actual, desired)
		wantErr(t, nil, err)
		policies := map[string]corev1.PullPolicy{}
		for _, c := range stored(w, actual).Spec.Template.Spec.Containers {
			policies[c.Name] = c.ImagePullPolicy
		}
		equal(t, "policies", map[string]corev1.PullPolicy{
			"sidecar": corev1.PullNever, "app": corev1.PullAlways, "b": corev1.PullNever,
		}, policies)
	}
	equal(t, "Updated events", 0, w.Count("event default/test Normal Updated"))
}

// The cache has the child, but the API server does not: a test may use another store for it, or none.
func TestChildren_ThatOnlyTheCacheHasAreDeleted(t *testing.T) {
	parent := newResource(finalizer("test-finalizer"), terminating)
	for name, reader := range map[string]client.Reader{
		"no reader": nil, "a reader without the child": newWorld(t).Config.APIReader,
	} {
		t.Run(name, func(t *testing.T) {
			for kind, reconciler := range map[string]func(w *world) reconcilers.SubReconciler[*fixture.Resource]{
				"child": func(w *world) reconcilers.SubReconciler[*fixture.Resource] {
					return newChildReconciler(w, withoutOwner)
				},
				"set": func(w *world) reconcilers.SubReconciler[*fixture.Resource] {
					return newChildSetReconciler(w, finalized)
				},
			} {
				w := newWorld(t, parent, newConfigMap("child", identified("a")))
				w.Config.APIReader = reader
				_, err := reconciler(w).Reconcile(w.Context(), parent.DeepCopy())
				wantErr(t, nil, err)
				equal(t, "deletes by the "+kind, 1, w.Count("delete ConfigMap default/child"))
				equal(t, "patches by the "+kind, 0, w.Count("patch"))
			}
		})
	}
}

func TestCastResource_ToUnstructured(t *testing.T) {
	resource := newResource()
	if !resource.GroupVersionKind().Empty() {
		t.Fatal("the resource has a kind, so the test has no effect")
	}
	_, err := castTo(func(_ context.Context, u *unstructured.Unstructured) (reconcilers.Result, error) {
		equal(t, "kind", "Resource", u.GetKind())
		return reconcilers.Result{}, unstructured.SetNestedField(u.Object, "blue", "status", "fields", "color")
	}).Reconcile(newWorld(t).Context(), resource)
	wantErr(t, nil, err)
	equal(t, "status", map[string]string{"color": "blue"}, resource.Status.Fields)
	equal(t, "kind of the resource", "", resource.Kind)
}

func TestAdmissionWebhookAdapter_DuplicateItemNames(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","volumeMounts":[
		{"name":"v","mountPath":"/a","future":1},{"name":"v","mountPath":"/b"}]}]}}`
	after, _ := mutated(t, pod, func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.VolumeMounts = c.VolumeMounts[1:]
		c.VolumeMounts[0].ReadOnly = true
	})
	spec := document(t, after).(map[string]any)["spec"].(map[string]any)
	mounts := spec["containers"].([]any)[0].(map[string]any)["volumeMounts"]
	equal(t, "mounts", any([]any{map[string]any{"name": "v", "mountPath": "/b", "readOnly": true}}), mounts)
}

func TestResourceReconciler_HaltKeepsItsRequeue(t *testing.T) {
	hour := reconcilers.Result{RequeueAfter: time.Hour, Priority: new(3)}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   reconcilers.Result
	}{
		"halt":    {"a halt is not a failure", reconcilers.ErrHaltSubReconcilers, hour},
		"failure": {"a failure is retried with back-off", errQuiet, backOff(3)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			r := &resourceReconciler{Config: w.Config, Reconciler: returning(hour, tc.err)}
			got, err := r.ReconcileManaged(context.Background(), testRequest)
			wantErr(t, nil, err)
			equal(t, "result, for "+tc.reason, tc.want, got)
		})
	}
}

func TestSuppressTransientErrors_ListOfAnotherKind(t *testing.T) {
	r := &reconcilers.SuppressTransientErrors[*corev1.Secret, *corev1.ConfigMapList]{
		Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{
			Sync: func(context.Context, *corev1.Secret) error { return nil },
		},
	}
	if err := r.Validate(t.Context()); err == nil {
		t.Error("a list of another kind is valid, but it would drop every count")
	}
}
