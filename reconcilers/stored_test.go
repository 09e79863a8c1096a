// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Does a webhook make a change of the spec vanish? The child is in sync with the value "value". Then the author wants
// "new" and the webhook changes what the server stores.
func TestUpdatingObjectManager_WhatAWebhookKeeps(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*corev1.ConfigMap)
		// admit changes an object that is written. old is nil for a new one.
		admit func(obj, old *corev1.ConfigMap)
		// first and second are what is reflected by two reconciles, and last after the webhook is gone.
		first, second, last string
		// writes are the writes of the first two reconciles.
		writes []string
		event  string
		// fails is a request that fails.
		fails string
	}{
		"none": {
			admit: func(_, _ *corev1.ConfigMap) {},
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
		},
		"keeps the old value": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data = old.Data
				}
			},
			first: "kept", second: "kept", last: `"child"`,
			writes: []string{
				"update ConfigMap default/child", "create ConfigMap default/child-",
				"update ConfigMap default/child", "create ConfigMap default/child-",
			},
			event: "Warning UpdateFailed: ",
		},
		"keeps the old value, and stamps each write": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data = old.Data
					obj.Annotations = map[string]string{"stamp": old.Annotations["stamp"] + "."}
				}
			},
			first: "kept", second: "kept", last: `"child"`,
			writes: []string{
				"update ConfigMap default/child", "create ConfigMap default/child-",
				"update ConfigMap default/child", "create ConfigMap default/child-",
			},
			event: "Warning UpdateFailed: ",
		},
		"keeps one of two": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data["key"] = old.Data["key"]
				}
			},
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
		},
		"stores another value of new objects, too": {
			admit: func(obj, _ *corev1.ConfigMap) { obj.Data = map[string]string{"key": "value"} },
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child", "create ConfigMap default/child-"},
			event:  "Warning FieldsKept: ",
		},
		"stores another value, and a dry run fails": {
			admit: func(obj, _ *corev1.ConfigMap) { obj.Data = map[string]string{"key": "value"} },
			first: `"child"`, second: `"child"`, last: `"child"`, fails: "create ConfigMap",
			writes: []string{"update ConfigMap default/child", "create ConfigMap default/child-"},
			event:  "Warning FieldsKept: The API server stores other values of ConfigMap default/child than requested, the dry ",
		},
		"stamps each write": {
			given: func(cm *corev1.ConfigMap) { cm.Data["stamp"] = "." },
			admit: func(obj, old *corev1.ConfigMap) { obj.Data["stamp"] = old.Data["stamp"] + "." },
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
			event:  "Warning FieldsRewritten: The API server sets fields of ConfigMap default/child to another value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			existing := newConfigMap("child")
			if tc.given != nil {
				tc.given(existing)
			}
			w := newWorld(t, newResource(), existing)
			if tc.fails != "" {
				w.Fail(tc.fails, errTest)
			}
			admits := true
			w.Admit = func(obj client.Object) {
				cm, ok := obj.(*corev1.ConfigMap)
				if !ok || !admits {
					return
				}
				old := stored(w, cm)
				if cm.ResourceVersion == "" {
					old = nil
				}
				tc.admit(cm, old)
			}
			child := newChild(showReflected)
			child.DesiredChild = desire(wanted("child", "key", "new", "other", "new"), nil)
			root := &resourceReconciler{Config: w.Config, Reconciler: child}
			reconcile := func() string {
				t.Helper()
				if _, err := root.ReconcileManaged(t.Context(), testRequest); err != nil {
					t.Fatal(err)
				}
				what := stored(w, newResource()).Status.Fields["reflected"]
				if strings.Contains(what, "kept the old values") {
					return "kept"
				}
				return what
			}
			got := []string{reconcile(), reconcile()}
			writes, found := []string{}, tc.event == ""
			for _, line := range w.Trace() {
				if strings.HasPrefix(line, "update ConfigMap") || strings.HasPrefix(line, "create ConfigMap") {
					writes = append(writes, strings.TrimRight(line, "0123456789"))
				}
				found = found || strings.Contains(line, tc.event)
			}
			admits = false
			got = append(got, reconcile())
			if diff := cmp.Diff([]string{tc.first, tc.second, tc.last}, got); diff != "" {
				t.Errorf("unexpected reflections (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("unexpected writes (-want +got):\n%s", diff)
			}
			if !found {
				t.Errorf("no event %q", tc.event)
			}
		})
	}
}

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

func TestUpdatingObjectManager_CountsFailuresToReadSchemas(t *testing.T) {
	stored, desired := newResource(), newResource()
	stored.UID = "child-uid"
	r := &reconcilers.UpdatingObjectManager[*fixture.Resource]{
		MergeBeforeUpdate: func(current, desired *fixture.Resource) { current.Spec = desired.Spec },
	}
	read := func() float64 {
		return apitest.Counted(t, "trueup_schema_failures_total", map[string]string{"kind": "Resource"})
	}
	synctest.Test(t, func(t *testing.T) {
		before := read()
		for _, after := range []struct {
			wait time.Duration
			want float64
		}{{want: 1}, {wait: time.Minute, want: 1}, {wait: 10 * time.Minute, want: 2}} {
			time.Sleep(after.wait)
			// The only differing field is not desired, so it may be a default.
			stored.Spec.Fields = map[string]string{"size": fmt.Sprint(after)}
			manageUnseen(t, r, stored.DeepCopy(), desired)
			if got := read() - before; got != after.want {
				t.Errorf("%v failures counted after another %s, want %v", got, after.wait, after.want)
			}
		}
	})
}

// noSchemas panics when its schemas are requested.
var noSchemas = &fakediscovery.FakeDiscovery{}

// manageUnseen manages an object with an object manager that has not managed it before. It returns the calls, and the
// log line of the update, if any.
func manageUnseen[T client.Object](
	t *testing.T, r *reconcilers.UpdatingObjectManager[T], stored, desired T,
) (w *world, calls []string, line string) {
	t.Helper()
	stored.SetCreationTimestamp(longAgo)
	w = newWorld(t, stored)
	w.Config.Discovery = noSchemas
	log, lines := newLog(0)
	actual := stored.DeepCopyObject().(T)
	wantErr(t, nil, w.Server.Get(t.Context(), client.ObjectKeyFromObject(stored), actual))
	_, err := r.Manage(withLog(w.Context(), log), newResource(), actual, desired)
	wantErr(t, nil, err)
	return w, w.Trace(), lineOf(lines.all(), "updating resource")
}

func TestUpdatingObjectManager_ObjectsOfAnEarlierProcess(t *testing.T) {
	update := []string{"update Deployment default/child", `event default/test Normal Updated: Updated Deployment "child"`}
	for name, tt := range map[string]struct {
		reason string
		uid    string
		stored func(*appsv1.Deployment)
		image  string
		calls  []string
		diff   string
	}{
		"in sync": {
			reason: "defaults are not a difference", uid: "child-uid", stored: func(*appsv1.Deployment) {}, image: "one",
		},
		"default changed": {
			reason: "a value other than the default is a difference, regardless of which client set it",
			uid:    "child-uid", image: "one", calls: update,
			stored: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) }, diff: `"diff"=["spec.replicas"]`,
		},
		"set by an earlier version": {
			reason: "a field that an earlier version set and this version does not set is removed",
			uid:    "child-uid", image: "one", calls: update,
			stored: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "fast"}
				d.Spec.Template.Spec.HostNetwork = true
			},
			diff: `"diff"=["spec.template.spec.nodeSelector[disk]" "spec.template.spec.hostNetwork"]`,
		},
		"changed": {
			reason: "the only differing field is written although defaults differ too",
			uid:    "child-uid", stored: func(*appsv1.Deployment) {}, image: "two",
			calls: update, diff: `"diff"=["spec.template.spec.containers[main].image"]`,
		},
		"stored by a fake client": {
			reason: "an object without a UID was not stored by a server, so it has no defaults",
			stored: func(*appsv1.Deployment) {}, image: "one",
			calls: update,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := wantedDeployment("one")
			defaults.Update(stored, stored)
			stored.UID = "child-uid"
			tt.stored(stored)
			if tt.uid == "" {
				stored.UID = ""
			}
			r := &deployments{MergeBeforeUpdate: func(current, desired *appsv1.Deployment) { current.Spec = desired.Spec }}
			w, calls, line := manageUnseen(t, r, stored, wantedDeployment(tt.image))
			equal(t, "calls, for "+tt.reason, tt.calls, calls)
			contains(t, line, tt.diff)
			lacks(t, line, "possiblyDefaults")
			if name == "changed" {
				documented(t, "children.md", line)
			}
			if tt.calls == nil {
				return
			}
			sent := &appsv1.Deployment{}
			wantErr(t, nil, w.Server.Get(t.Context(), client.ObjectKeyFromObject(stored), sent))
			equal(t, "sent spec", wantedDeployment(tt.image).Spec, sent.Spec)
		})
	}
}

func TestUpdatingObjectManager_ListsPossibleDefaultsSeparately(t *testing.T) {
	stored, desired := newResource(), newResource()
	stored.UID = "child-uid"
	stored.Spec.Fields = map[string]string{"size": "small", "color": "red"}
	stored.Annotations = map[string]string{"by": "server"}
	desired.Spec.Fields = map[string]string{"color": "blue"}
	r := &reconcilers.UpdatingObjectManager[*fixture.Resource]{
		MergeBeforeUpdate: func(current, desired *fixture.Resource) {
			current.Annotations, current.Spec = desired.Annotations, desired.Spec
		},
	}
	_, calls, line := manageUnseen(t, r, stored, desired)
	equal(t, "number of calls", 2, len(calls))
	contains(t, line, `"diff"=["spec.fields[color]"] "possiblyDefaults"=["metadata.annotations[by]" "spec.fields[size]"]`)
	documented(t, "children.md", line)
}

func TestUpdatingObjectManager_SecretOfAnEarlierVersion(t *testing.T) {
	stored := &corev1.Secret{Data: map[string][]byte{"password": []byte("a"), "old": []byte("b")}}
	stored.Namespace, stored.Name, stored.UID = "default", "child", "child-uid"
	desired := &corev1.Secret{Data: map[string][]byte{"password": []byte("a")}}
	desired.Namespace, desired.Name = "default", "child"
	r := &reconcilers.UpdatingObjectManager[*corev1.Secret]{MergeBeforeUpdate: func(current, desired *corev1.Secret) {
		current.Type, current.Data = desired.Type, desired.Data
	}}
	_, _, line := manageUnseen(t, r, stored, desired)
	contains(t, line, `"diff"=["data[old]"]`)
}
