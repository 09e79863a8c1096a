// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// randomNamesScenario has a reconciler that chooses a random name for a ConfigMap. It looks for one in the
// cache or, as is correct, in the API server.
func randomNamesScenario(live bool) Scenario {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		reader := client.Reader(e.Client)
		if live {
			reader = e.APIReader
		}
		all := &corev1.ConfigMapList{}
		if err := reader.List(ctx, all, client.InNamespace(secret.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		configMap := configMapOf(secret, true)
		if slices.ContainsFunc(all.Items, func(c corev1.ConfigMap) bool { return metav1.IsControlledBy(&c, secret) }) {
			return reconcile.Result{}, nil
		}
		configMap.Name = "a-" + rand.String(5)
		configMap.Annotations = map[string]string{"example.com/of": configMap.Name + ".default"}
		return reconcile.Result{}, e.Client.Create(ctx, configMap)
	})
	s.Steps = Lifecycle(newSecret("a"), func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} })
	return s
}

func TestRandomNames(t *testing.T) {
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live: ", live), func(t *testing.T) {
			report := mustCheck(t, randomNamesScenario(live), DefaultOptions())
			f := report.Failure
			switch {
			case live && f != nil:
				t.Error(f)
			case !live && (f == nil || f.Violation.Oracle != OracleDuplicates):
				t.Errorf("got %v, want a duplicate", f)
			}
		})
	}
}
