// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

type (
	deployments          = reconcilers.UpdatingObjectManager[*appsv1.Deployment]
	deploymentReconciler = reconcilers.ChildReconciler[*fixture.Resource, *appsv1.Deployment, *appsv1.DeploymentList]
)

// wantedDeployment returns a Deployment as a user writes it, without the defaults of the server.
func wantedDeployment(image string) *appsv1.Deployment {
	labels := map[string]string{"app": "child"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}

// admitDeployment sets the defaults of the server.
func admitDeployment(obj client.Object) {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return
	}
	if d.Spec.Replicas == nil {
		d.Spec.Replicas = new(int32(1))
	}
	if d.Spec.Strategy.Type == "" {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromString("25%"))},
		}
	}
	pod := &d.Spec.Template.Spec
	if pod.RestartPolicy == "" {
		pod.RestartPolicy = corev1.RestartPolicyAlways
	}
	for i := range pod.Containers {
		if pod.Containers[i].ImagePullPolicy == "" {
			pod.Containers[i].ImagePullPolicy = corev1.PullIfNotPresent
		}
	}
	// A webhook injects a sidecar.
	if len(pod.Containers) == 1 {
		pod.Containers = append(pod.Containers, corev1.Container{
			Name: "injected", Image: "proxy", ImagePullPolicy: corev1.PullAlways,
		})
	}
}

// newDeploymentReconciler returns a reconciler for a Deployment with the given image.
func newDeploymentReconciler(image *string) *deploymentReconciler {
	return &deploymentReconciler{
		DesiredChild: func(context.Context, *fixture.Resource) (*appsv1.Deployment, error) {
			return wantedDeployment(*image), nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels = desired.Labels
			current.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *appsv1.Deployment, error) {},
	}
}

const (
	deploymentCreated = `event default/test Normal Created: Created Deployment "child"`
	deploymentUpdated = `event default/test Normal Updated: Updated Deployment "child"`
)

func TestUpdatingObjectManager_ServerDefaultsAreInSync(t *testing.T) {
	w := newWorld(t)
	w.Admit = admitDeployment
	image := "one"
	r := newDeploymentReconciler(&image)
	reconcile := func(what string, want ...string) {
		t.Helper()
		_, err := r.Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
		equal(t, "writes: "+what, want, w.Writes())
	}
	create, update := "create Deployment default/child", "update Deployment default/child"

	reconcile("create", create, deploymentCreated)
	equal(
		t, "containers, the injected one included", 2, len(stored(w, wantedDeployment("")).Spec.Template.Spec.Containers),
	)
	for i := range 3 {
		reconcile(fmt.Sprintf("reconcile %d after create", i+1))
	}
	image = "two"
	reconcile("a change", update, deploymentUpdated)
	equal(t, "generation", 2, stored(w, wantedDeployment("")).Generation)
	for i := range 3 {
		reconcile(fmt.Sprintf("reconcile %d after a change", i+1))
	}

	for what, change := range map[string]func(*appsv1.Deployment){
		"drift of a desired field": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "drift"
		},
		"drift of a default": func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) },
		"drift of labels":    func(d *appsv1.Deployment) { d.Labels["app"] = "drift" },
		"drift of an injected field": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].Image = "drift"
		},
	} {
		drifted := stored(w, wantedDeployment(""))
		change(drifted)
		wantErr(t, nil, w.Server.Update(context.Background(), drifted))
		reconcile(what, update, deploymentUpdated)
		reconcile("nothing after repair of " + what)
		after := stored(w, wantedDeployment(""))
		equal(t, what+": image", "two", after.Spec.Template.Spec.Containers[0].Image)
		equal(t, what+": replicas", 1, *after.Spec.Replicas)
		equal(t, what+": label", "child", after.Labels["app"])
		equal(t, what+": injected", "proxy", after.Spec.Template.Spec.Containers[1].Image)
	}
}

func TestUpdatingObjectManager_WritesAtMostOnceAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.Admit = admitDeployment
	image := "one"
	_, err := newDeploymentReconciler(&image).Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	before := stored(w, wantedDeployment(""))
	w.Trace()

	restarted := newDeploymentReconciler(&image)
	for i, want := range [][]string{{"update Deployment default/child"}, nil, nil} {
		_, err := restarted.Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
		// An update that the server does not store must not be recorded as an event.
		equal(t, fmt.Sprintf("writes of reconcile %d", i+1), want, w.Writes())
	}
	equal(t, "the object", before, stored(w, wantedDeployment("")))
}

func TestAdmissionMemory_IsPerObject(t *testing.T) {
	w := newWorld(t)
	w.Admit = admitDeployment
	r := &deployments{MergeBeforeUpdate: func(current, desired *appsv1.Deployment) { current.Spec = desired.Spec }}
	objects := map[string]*appsv1.Deployment{}
	for _, name := range []string{"a", "b"} {
		desired := wantedDeployment("of " + name)
		desired.Name = name
		created, err := r.Manage(w.Context(), newResource(), nil, desired)
		wantErr(t, nil, err)
		objects[name] = created.DeepCopy()
	}
	w.Trace()
	for name, actual := range objects {
		desired := wantedDeployment("of " + name)
		desired.Name = name
		_, err := r.Manage(w.Context(), newResource(), actual, desired)
		wantErr(t, nil, err)
	}
	equal(t, "writes", nil, w.Writes())
}

func TestUpdatingObjectManager_AcceptsAReusedDesiredObject(t *testing.T) {
	w := newWorld(t)
	r := &configMaps{MergeBeforeUpdate: mergeData}
	actual, err := r.Manage(w.Context(), newResource(), nil, wanted("child", "key", "one"))
	wantErr(t, nil, err)
	actual = actual.DeepCopy()

	// The same object is returned each time, with changes.
	reused := wanted("child", "key", "two")
	actual, err = r.Manage(w.Context(), newResource(), actual, reused)
	wantErr(t, nil, err)
	actual = actual.DeepCopy()
	reused.Data["key"] = "three"
	actual, err = r.Manage(w.Context(), newResource(), actual, reused)
	wantErr(t, nil, err)
	equal(t, "data", map[string]string{"key": "three"}, stored(w, actual).Data)
}

func TestAdmissionMemory_FailsOpen(t *testing.T) {
	w := newWorld(t)
	// The server keeps a list as the user wrote it, and the merge does not change this list.
	w.Admit = func(obj client.Object) {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			cm.Annotations = map[string]string{"admitted": cm.Data["key"]}
		}
	}
	r := &configMaps{MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
		current.Data = desired.Data
		// The merge computes a field that the desired object does not have, so a patch of the field cannot be applied
		// to it.
		current.Annotations = map[string]string{"merged": desired.Data["key"]}
	}}
	log, lines := newLog(1)
	ctx := withLog(w.Context(), log)
	actual, err := r.Manage(ctx, newResource(), nil, wanted("child"))
	wantErr(t, nil, err)
	contains(t, lines.all(), "unable to determine the changes by the server, the resource may be updated again")
	w.Trace()
	actual, err = r.Manage(ctx, newResource(), actual.DeepCopy(), wanted("child"))
	wantErr(t, nil, err)
	equal(
		t, "writes: without a memory the object is written once more", []string{"update ConfigMap default/child"}, w.Writes(),
	)
	equal(t, "data", map[string]string{"key": "value"}, actual.Data)
}

func TestAdmissionMemory_RemembersHarmonizedFields(t *testing.T) {
	w := newWorld(t)
	w.Admit = func(obj client.Object) {
		if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Data["immutable"] == "" {
			cm.Data["immutable"] = "chosen by the server"
			cm.Data["default"] = "of the server"
		}
	}
	r := &configMaps{
		HarmonizeImmutableFields: func(current, desired *corev1.ConfigMap) {
			desired.Data["immutable"] = current.Data["immutable"]
		},
		MergeBeforeUpdate: mergeData,
	}
	actual, err := r.Manage(w.Context(), newResource(), nil, wanted("child"))
	wantErr(t, nil, err)
	w.Trace()
	for range 2 {
		actual, err = r.Manage(w.Context(), newResource(), actual.DeepCopy(), wanted("child"))
		wantErr(t, nil, err)
	}
	equal(t, "writes", nil, w.Writes())
	equal(
		t, "data", map[string]string{"key": "value", "immutable": "chosen by the server", "default": "of the server"},
		actual.Data,
	)
}
