// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

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
