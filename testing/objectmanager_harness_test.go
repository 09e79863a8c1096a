// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
	"trueup.dev/validation"
)

var (
	actualStasher  = rtesting.ObjectManagerReconcilerTestHarnessActualStasher[*corev1.ConfigMap]()
	desiredStasher = rtesting.ObjectManagerReconcilerTestHarnessDesiredStasher[*corev1.ConfigMap]()
	resultStasher  = rtesting.ObjectManagerReconcilerTestHarnessResultStasher[*corev1.ConfigMap]()
)

type recordedManager struct {
	setUp     error
	manageErr error
	calls     [][]client.Object
}

func (m *recordedManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return m.setUp
}

func (m *recordedManager) Manage(
	_ context.Context, resource client.Object, actual, desired *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	m.calls = append(m.calls, []client.Object{resource, actual, desired})
	return desired, m.manageErr
}

func TestHarness(t *testing.T) {
	resource := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	actual := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "actual"}}
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "desired"}}
	errManage := errors.New("broken on purpose")

	tests := map[string]struct {
		actual, desired *corev1.ConfigMap
		err             error
	}{
		"nothing":         {},
		"actual":          {actual: actual},
		"desired":         {desired: desired},
		"both":            {actual: actual, desired: desired},
		"fails":           {actual: actual, err: errManage},
		"fails, not none": {desired: desired, err: errManage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := (&rtesting.ExpectConfig{Scheme: fixture.NewScheme()}).Config()
			ctx := reconcilers.StashConfig(stash.WithContext(t.Context()), config)
			actualStasher.Store(ctx, tt.actual)
			desiredStasher.Store(ctx, tt.desired)
			manager := &recordedManager{manageErr: tt.err}
			harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: manager}

			result, err := harness.Reconcile(ctx, resource)
			if result != (reconcilers.Result{}) || !errors.Is(err, tt.err) {
				t.Errorf("got %v, %v", result, err)
			}
			if diff := cmp.Diff([][]client.Object{{resource, tt.actual, tt.desired}}, manager.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got, err := resultStasher.RetrieveOrError(ctx); got != tt.desired || err != nil {
				t.Errorf("result: %v, %v", got, err)
			}
			if tt.actual != nil {
				if err := config.Get(ctx, client.ObjectKeyFromObject(tt.actual), &corev1.ConfigMap{}); err != nil {
					t.Errorf("the actual object is not there: %v", err)
				}
			}
		})
	}
}

func TestHarnessWithoutValues(t *testing.T) {
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: &recordedManager{}}
	for name, only := range map[string]stash.Stasher[*corev1.ConfigMap]{
		"no actual object": desiredStasher, "no desired object": actualStasher,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			only.Store(ctx, nil)
			defer func() {
				if r := recover(); r == nil {
					t.Error("no panic")
				}
			}()
			_, _ = harness.Reconcile(ctx, &fixture.Resource{})
		})
	}
}

func TestHarnessWithAnotherClient(t *testing.T) {
	ctx := reconcilers.StashConfig(stash.WithContext(t.Context()), reconcilers.Config{Client: fake.NewFakeClient()})
	actualStasher.Store(ctx, &corev1.ConfigMap{})
	desiredStasher.Store(ctx, nil)
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: &recordedManager{}}
	if _, err := harness.Reconcile(ctx, &fixture.Resource{}); err == nil || !strings.Contains(err.Error(), "TestClient") {
		t.Errorf("error: %v", err)
	}
}

func TestHarnessSetsUpItsManager(t *testing.T) {
	manager := &recordedManager{setUp: errors.New("broken on purpose")}
	harness := &rtesting.ObjectManagerReconcilerTestHarness[*corev1.ConfigMap]{ObjectManager: manager}
	if err := harness.SetupWithManager(t.Context(), nil, nil); !errors.Is(err, manager.setUp) {
		t.Errorf("error: %v", err)
	}
	if _, ok := any(harness).(validation.Validator); ok {
		t.Error("it is up to the object manager to be valid")
	}
}

// The three keys differ, and do not depend on the type, so that cases can share them.
func TestHarnessStashers(t *testing.T) {
	keys := map[stash.Key]bool{actualStasher.Key(): true, desiredStasher.Key(): true, resultStasher.Key(): true}
	if len(keys) != 3 {
		t.Errorf("keys: %v", keys)
	}
}
