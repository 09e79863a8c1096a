// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestPaused(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, by string
		want           string
	}{
		"not":                    {},
		"not, said explicitly":   {annotation: "false"},
		"true":                   {annotation: "true", want: "paused: annotation trueup.dev/paused"},
		"with a reason":          {annotation: "until Friday", want: "paused: until Friday"},
		"by the function":        {by: "cluster", want: "paused: cluster"},
		"the function after no":  {annotation: "false", by: "cluster", want: "paused: cluster"},
		"the annotation goes on": {annotation: "until Friday", by: "cluster", want: "paused: until Friday"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newCalls()
			r := &paused{
				Reconciler: inner,
				PausedBy:   func(context.Context, *fixture.Resource) (string, error) { return tc.by, nil },
			}
			resource := newResource()
			if tc.annotation != "" {
				metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, tc.annotation)
			}
			result, err := r.Reconcile(context.Background(), resource)
			equal(t, "result", reconcilers.Result{}, result)
			if tc.want == "" {
				wantErr(t, nil, err)
				equal(t, "calls", 1, inner.count)
				return
			}
			equal(t, "calls", 0, inner.count)
			wantErr(t, reconcilers.ErrRetryAfter, err)
			wantErr(t, reconcilers.ErrSkipStatusUpdate, err)
			contains(t, err.Error(), tc.want)
		})
	}
}

func TestPaused_FunctionFails(t *testing.T) {
	_, err := (&paused{
		Reconciler: never(t), PausedBy: func(context.Context, *fixture.Resource) (string, error) { return "", errTest },
	}).Reconcile(context.Background(), newResource())
	wantErr(t, errTest, err)
}

// A paused resource is not written: not by the reconciler below, not its finalizers, not its status, also not while it
// is being deleted.
func TestPaused_WritesNothing(t *testing.T) {
	for name, deleting := range map[string]bool{"alive": false, "being deleted": true} {
		t.Run(name, func(t *testing.T) {
			resource := newResource()
			resource.Finalizers = []string{"test.trueup.dev/mine"}
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, "true")
			if deleting {
				terminating(resource)
			}
			w := newWorld(t, resource)
			inner := newCalls()
			root := &resourceReconciler{
				Type: &fixture.Resource{}, Config: w.Config,
				Reconciler: &paused{Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{
					Finalizer: "test.trueup.dev/mine", Reconciler: inner,
				}},
			}
			request := requestFor(resource)
			for range 3 {
				_, err := root.Reconcile(context.Background(), request)
				wantErr(t, nil, err)
			}
			equal(t, "writes and events", []string(nil), w.Writes())
			equal(t, "calls", 0, inner.count)
		})
	}
}

// The condition costs one write when the resource is paused, and one when it resumes.
func TestPaused_Condition(t *testing.T) {
	resource := newResource()
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, reconcilers.AnnotationPaused, "until Friday")
	w := newWorld(t, resource)
	inner := newCalls()
	root := &resourceReconciler{
		Type: &fixture.Resource{}, Config: w.Config, Reconciler: &paused{Condition: "Paused", Reconciler: inner},
	}
	reconcile := func() {
		t.Helper()
		_, err := root.Reconcile(context.Background(), requestFor(resource))
		wantErr(t, nil, err)
	}
	condition := func() *metav1.Condition {
		for _, c := range stored(w, resource).Status.Conditions {
			if c.Type == "Paused" {
				return &c
			}
		}
		return nil
	}
	reconcile()
	if c := condition(); c == nil || c.Status != metav1.ConditionTrue || c.Message != "until Friday" {
		t.Errorf("got condition %v", c)
	}
	w.Trace()
	reconcile()
	equal(t, "writes while paused", []string(nil), w.Writes())

	resumed := stored(w, resource)
	resumed.Annotations = nil
	wantErr(t, nil, w.Server.Update(context.Background(), resumed))
	reconcile()
	equal(t, "calls after the resume", 1, inner.count)
	if c := condition(); c != nil {
		t.Errorf("the condition was not removed: %v", c)
	}
}
