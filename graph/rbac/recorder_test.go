// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/graph/rbac"
	"trueup.dev/observe"
)

// A read from a cache needs the permissions of the cache. The mapper knows only one kind: other plurals are guessed.
func TestWhichPermissionsDoCallsNeed(t *testing.T) {
	pod, policy := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Policy")
	recorder := &rbac.Recorder{}
	listener := recorder.Listener(podsAreBeans())
	for range 2 {
		for _, event := range []observe.Event{
			&observe.Call{Verb: observe.VerbGet, Kind: pod, Cached: true},
			&observe.Call{Verb: observe.VerbPatch, Kind: pod, Subresource: "status"},
			&observe.Call{Verb: observe.VerbGet, Kind: policy},
			&observe.Call{Verb: observe.VerbUpdate}, // of an unknown kind
			&observe.ReconcileStarted{},
		} {
			if listener.Observe(t.Context(), event) != t.Context() {
				t.Errorf("%T: another context", event)
			}
		}
	}
	want := permissions("list beans", "watch beans", "patch beans/status", "get policies")
	if diff := cmp.Diff(want, recorder.Used()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
