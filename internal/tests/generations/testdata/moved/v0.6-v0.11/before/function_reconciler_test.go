// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/functions/api/v1"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
)

func newScheme(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newFunction(edits ...func(*v1.Function)) *v1.Function {
	function := &v1.Function{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "square", Generation: 1, Finalizers: []string{"functions.example.com/records"},
		},
		Spec: v1.FunctionSpec{Images: []string{"square"}, Paused: rtesting.BoolPtr(true)},
	}
	for _, edit := range edits {
		edit(function)
	}
	return function
}

func TestFunctionReconciler(t *testing.T) {
	scheme := newScheme(t)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "square"}}
	rts := rtesting.ReconcilerTests{
		"is ready": {
			Request:      request,
			GivenObjects: []client.Object{newFunction()},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "theme").By("default", "square"),
			},
			ExpectStatusUpdates: []client.Object{newFunction(func(f *v1.Function) {
				f.Status.ObservedGeneration = 1
				f.Status.InitializeConditions()
				f.Status.MarkServiceReady()
			})},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(newFunction(), scheme, corev1.EventTypeNormal, "StatusUpdated", `Updated status`),
			},
			Prepare: func(t *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) (context.Context, error) {
				Seen = nil
				return ctx, nil
			},
			CleanUp: func(t *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) error {
				if len(Seen) != 1 {
					t.Errorf("seen: %s", Seen)
				}
				return nil
			},
		},
	}
	rts.Run(t, scheme, func(t *testing.T, rtc *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return FunctionReconciler(c)
	})
}

func TestTheme(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	scheme := newScheme(t)
	rts := rtesting.SubReconcilerTests{
		"is deleted": {
			Resource: newFunction(func(f *v1.Function) { f.DeletionTimestamp = &deleted; f.Finalizers = nil }),
		},
		"another one is deleted": {
			Resource: newFunction(func(f *v1.Function) { f.DeletionTimestamp = &deleted; f.Finalizers = nil }),
			GivenObjects: []client.Object{
				newFunction(func(f *v1.Function) { f.Name = "cube"; f.DeletionTimestamp = &deleted; f.Finalizers = nil }),
			},
		},
		"config is missing": {
			Resource: newFunction(),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "theme").By("default", "square"),
			},
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("get", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom}),
			},
			ShouldErr: true,
			Verify:    rtesting.AssertErrorEqual(errBoom),
		},
	}
	rts.Run(t, scheme, func(
		t *testing.T, rtc *rtesting.SubReconcilerTestCase, c reconcilers.Config,
	) reconcilers.SubReconciler {
		return Theme()
	})
}

var errBoom = context.DeadlineExceeded

func TestValidate(t *testing.T) {
	function := newFunction(func(f *v1.Function) { f.Spec.Images = []string{"square", ""} })
	if got, want := function.Validate().ToAggregate().Error(), "spec.images[1].name: Required value"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
