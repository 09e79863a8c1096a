// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/reconcilers"
)

// TestWhichFieldsAreNotStored writes an object with a field that its schema does not have.
func TestWhichFieldsAreNotStored(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	dropped := map[string][]string{}
	write := &reconcilers.SyncReconciler[*fixture.Resource]{
		Name: "Write", Sync: func(ctx context.Context, parent *fixture.Resource) error {
			obj := &unstructured.Unstructured{Object: map[string]any{"bogus": "x", "data": map[string]any{"a": "1"}}}
			obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			obj.SetNamespace(parent.Namespace)
			obj.SetName(parent.Name)
			return client.IgnoreAlreadyExists(reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, obj))
		},
	}
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		observe.Of(mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
			if call, ok := event.(*observe.Call); ok && call.IsWrite() && len(call.Dropped) > 0 {
				mu.Lock()
				defer mu.Unlock()
				dropped[call.Kind.Kind+" "+call.Object.Name] = call.Dropped
			}
		}))
		return root(write)(ctx, mgr, c)
	})
	e.Add(newResource("first", nil))
	e.events("first", "FieldsNotStored")
	e.Add(newResource("second", nil))
	e.Eventually(func() error {
		mu.Lock()
		defer mu.Unlock()
		want := map[string][]string{"ConfigMap first": {"bogus"}, "ConfigMap second": {"bogus"}}
		if diff := cmp.Diff(want, dropped); diff != "" {
			return fmt.Errorf("dropped fields (-want +got):\n%s", diff)
		}
		return nil
	})
	var events corev1.EventList
	e.Must(e.List(t.Context(), &events, client.InNamespace(e.Namespace)))
	events.Items = slices.DeleteFunc(events.Items, func(event corev1.Event) bool {
		return event.Reason != "FieldsNotStored"
	})
	if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, "has not stored bogus of ConfigMap ") {
		t.Errorf("got events %v, want one that names the field", events.Items)
	}
}
