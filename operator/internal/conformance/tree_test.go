// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// A tree of reconcilers is a full handler: its children are watched, and the status that it sets is written.
func TestTreeAsReconciler(t *testing.T) {
	child := &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: parent.Namespace, Name: parent.Name,
				}, Data: map[string]string{"value": valueOf(parent)},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, err error) {
			parent.Status.Fields = map[string]string{}
			if child != nil && err == nil {
				parent.Status.Fields["child"] = valueOf(child)
			}
		},
	}
	inLab(t, func(l *lab) {
		handler := operator.NewOpinionated[*fixture.Resource](
			finalizer, operator.AsReconciler(reconcilers.Sequence[*fixture.Resource]{child}),
		)
		beside := &notebook[*fixture.Resource]{}
		l.start(controller(handler, opinionatedAs(finalizer+"-beside", beside)))
		expect := func(when, value string) {
			t.Helper()
			l.pass(time.Second)
			r, cm := newResource("a", ""), newConfigMap("a", "")
			l.must(l.Get(l.Context(), client.ObjectKeyFromObject(r), r))
			l.must(l.Get(l.Context(), client.ObjectKeyFromObject(cm), cm))
			if r.Status.Fields["child"] != value || valueOf(cm) != value || r.Status.ObservedGeneration != r.Generation {
				t.Errorf("%s: child %v, status %v, want %s", when, cm.Data, r.Status, value)
			}
			if diff := cmp.Diff([]string{finalizer, finalizer + "-beside"}, r.Finalizers); diff != "" {
				t.Errorf("%s: finalizers (-want +got):\n%s", when, diff)
			}
		}
		l.must(l.Create(l.Context(), newResource("a", "1")))
		expect("created", "1")
		changeIn(l, newResource("a", ""), setValue("2"))
		expect("updated", "2")
		cm := newConfigMap("a", "")
		l.must(l.Get(l.Context(), client.ObjectKeyFromObject(cm), cm))
		cm.Data["value"] = "by hand"
		l.must(l.Update(l.Context(), cm))
		expect("child changed by hand", "2")
		l.must(l.Delete(l.Context(), cm))
		expect("child deleted by hand", "2")
		beside.wantLines(t, "Add a 1", "Update a 1>2")
		l.must(l.Delete(l.Context(), newResource("a", "")))
		l.pass(time.Second)
		beside.wantLines(t, "Delete a 2")
		if err := l.Get(
			l.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, newResource("a", ""),
		); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the resource still exists: %v", err)
		}
	})
}

func opinionatedAs(finalizer string, n *notebook[*fixture.Resource]) handler {
	return operator.OpinionatedWatcher(finalizer, n)
}
