// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// withoutEffect is the factory of cases that are about something else than the reconciler.
func withoutEffect(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
	return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
}

func TestReconcilerTestCase(t *testing.T) {
	s := &story{t: t}
	tc := &rtesting.ReconcilerTestCase{
		Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "resource"}},
		Now:     noon,
		Prepare: func(_ *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) (context.Context, error) {
			s.tell(ctx, "prepare", tc.Metadata)
			tc.Metadata["by"] = "prepare"
			tc.GivenObjects = []client.Object{configMap("given")}
			tc.ExpectCreates = []client.Object{configMap("made")}
			tc.CleanUp = func(_ *testing.T, ctx context.Context, tc *rtesting.ReconcilerTestCase) error {
				s.tell(ctx, "clean up", tc.Metadata)
				return nil
			}
			return prepared(ctx), nil
		},
		ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
	}
	tc.Run(t, scheme, func(_ *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			s.tell(ctx, "reconcile "+req.String(), tc.Metadata)
			//nolint:staticcheck // Requeue has no effect beside RequeueAfter, so it is not compared
			return reconcile.Result{Requeue: true, RequeueAfter: time.Minute}, work(ctx, c)
		})
	})
	want := []string{
		"prepare: prepared=false stash=false recursive=false metadata=map[]",
		"reconcile default/resource: prepared=true stash=false recursive=true metadata=map[by:prepare]",
		"clean up: prepared=true stash=false recursive=true metadata=map[by:prepare]",
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestReconcilerTestCaseOutcomes(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		tc     rtesting.ReconcilerTestCase
		result reconcile.Result
		err    error
	}{
		"Error": {
			reason: "controllers ignore the result of a reconciler that fails",
			tc:     rtesting.ReconcilerTestCase{ShouldErr: true, ExpectedResult: reconcile.Result{RequeueAfter: time.Hour}},
			err:    boom,
		},
		"Requeue": {
			reason: "the older field counts where there is no time",
			tc:     rtesting.ReconcilerTestCase{ExpectedResult: reconcile.Result{Requeue: true}}, //nolint:staticcheck // see the reason
			result: reconcile.Result{Requeue: true},                                              //nolint:staticcheck // see the reason
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			verified := false
			tt.tc.Verify = func(_ *testing.T, result reconcile.Result, err error) {
				verified = result == tt.result && errors.Is(err, tt.err)
			}
			tt.tc.Run(t, scheme, func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
				return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					return tt.result, tt.err
				})
			})
			if !verified {
				t.Errorf("%s: Verify was not called with what the reconciler has returned", tt.reason)
			}
		})
	}
}

// A config that is added is one of its own, and is asserted.
func TestReconcilerTestCaseAdditionalConfigs(t *testing.T) {
	tc := &rtesting.ReconcilerTestCase{
		GivenObjects: []client.Object{configMap("here")},
		AdditionalConfigs: map[string]rtesting.ExpectConfig{
			"remote": {
				GivenObjects:  []client.Object{configMap("there")},
				ExpectCreates: []client.Object{configMap("made")},
			},
		},
	}
	tc.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			remote, ok := reconcilers.RetrieveAdditionalConfigs(ctx)["remote"]
			if !ok {
				return reconcile.Result{}, errors.New("the config is not on the context")
			}
			if remote == c {
				return reconcile.Result{}, errors.New("the config is the main one")
			}
			if err := remote.Get(ctx, client.ObjectKeyFromObject(configMap("there")), &corev1.ConfigMap{}); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, remote.Create(ctx, configMap("made"))
		})
	})
	if tc.AdditionalConfigs["remote"].Scheme != nil {
		t.Error("the table of the author was changed")
	}
}

// sizes compares created objects by the number of their entries.
type sizes struct{ rtesting.Differ }

func (sizes) ResourceCreate(expected, actual client.Object) string {
	return cmp.Diff(len(expected.(*corev1.ConfigMap).Data), len(actual.(*corev1.ConfigMap).Data))
}

func TestReconcilerTestCaseDiffer(t *testing.T) {
	tc := &rtesting.ReconcilerTestCase{
		Differ:        sizes{rtesting.DefaultDiffer},
		ExpectCreates: []client.Object{page("home", "any title")},
		AdditionalConfigs: map[string]rtesting.ExpectConfig{
			"remote": {ExpectCreates: []client.Object{page("home", "any title")}},
		},
	}
	tc.Run(t, scheme, doing(func(ctx context.Context, c reconcilers.Config) error {
		remote := reconcilers.RetrieveAdditionalConfigs(ctx)["remote"]
		return errors.Join(c.Create(ctx, page("index", "Hello")), remote.Create(ctx, page("about", "Hello")))
	}))
}

func TestReconcilerTestCaseWiring(t *testing.T) {
	made := 0
	tc := &rtesting.ReconcilerTestCase{
		ExpectWiring: &rtesting.Wiring{For: []rtesting.Watch{{Object: &corev1.Secret{}}}},
	}
	tc.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		made++
		return expiryReconciler(c)
	})
	if made != 2 {
		t.Errorf("the factory was called %d times, want once for the call and once for the wiring", made)
	}
}

func TestReconcilerTestCaseKey(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "resource"}
	tc := &rtesting.ReconcilerTestCase{Key: key}
	tc.Run(t, scheme, func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			if diff := cmp.Diff(reconcile.Request{NamespacedName: key}, req); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			return reconcile.Result{}, nil
		})
	})
}
