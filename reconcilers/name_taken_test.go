// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoHasTheNameOfTheChild(t *testing.T) {
	owned := newConfigMap("child", orphan)
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "other", Controller: new(true)},
	}
	written := newConfigMap("child", orphan)
	now := metav1.Now()
	written.ManagedFields = []metav1.ManagedFieldsEntry{ // the times have only seconds
		{Manager: "controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &now},
		{Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, Time: &now},
	}
	for name, tc := range map[string]struct {
		given objects
		want  string
	}{
		"an object with a controller": {objects{owned}, `the existing object is controlled by Deployment "other"`},
		"an object without one":       {objects{newConfigMap("child", orphan)}, "the existing object has no controller"},
		"an object that others wrote": {objects{written}, `was first written by "kubectl-create" (Update)`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.given, newResource())...)
			r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w)}
			built, finished := observed(t, w, r)
			if _, err := built.Reconcile(t.Context(), testRequest); err != nil {
				t.Fatal(err)
			}
			if !finished.Failed() || len(finished.Refused) != 1 {
				t.Fatalf("got failed %v, refused %v", finished.Failed(), finished.Refused)
			}
			refused := finished.Refused[0]
			if refused.Object != "ConfigMap default/child" || !strings.HasSuffix(refused.Step, "ChildReconciler") {
				t.Errorf("got %s", refused.Origin())
			}
			if got := refused.Err.Error(); !strings.Contains(got, "already exists; ") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
