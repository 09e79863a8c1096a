// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// cronScenario creates a config map each minute, until the secret is suspended. If named is set, the name is the name
// of the minute, so that none is created twice. Otherwise the last minute is recorded after the creation.
func cronScenario(named bool) Scenario {
	return secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if secret.Labels["suspend"] != "" || secret.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		begin := secret.CreationTimestamp.Time
		minute := int(time.Since(begin) / time.Minute)
		configMap := configMapOf(secret, true)
		if configMap.Name = fmt.Sprintf("%s-%d", secret.Name, minute); !named {
			configMap.Name, configMap.GenerateName = "", secret.Name+"-"
		}
		if last := strconv.Itoa(minute); minute > 0 && secret.Annotations["last"] != last {
			if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, configMap)); err != nil {
				return reconcile.Result{}, err
			}
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "last", last)
			if err := e.Client.Update(ctx, secret); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{RequeueAfter: time.Until(begin.Add(time.Duration(minute+1) * time.Minute))}, nil
	})
}

func suspend(secret *corev1.Secret) { secret.Labels = map[string]string{"suspend": "true"} }

// TestSettleExplainsWorkThatDependsOnTime waits for a controller that has new work each minute.
func TestSettleExplainsWorkThatDependsOnTime(t *testing.T) {
	s := cronScenario(true)
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	f := foundIn(t, s)
	if f == nil || f.Violation.Oracle != OracleQuiescence || !strings.Contains(f.String(), "RequeueAfter of 1m0s") ||
		!strings.Contains(f.String(), "SleepThen") {
		t.Errorf("the failure does not say what to do:\n%s", f)
	}
}

// TestSleepThen lets a schedule run for some minutes. A correct controller passes, and one that creates an object twice
// is found.
func TestSleepThen(t *testing.T) {
	for _, named := range []bool{true, false} {
		s := cronScenario(named)
		a := newSecret("a")
		s.Steps = Steps(Apply(a), SleepThen(3*time.Minute+30*time.Second, Change(a, suspend)), Delete(a), Settle())
		s.Without = map[Fault]string{
			FaultTaken: "names of config maps are not checked", FaultChildDeleted: "nothing recreates old config maps",
		}
		switch f := foundIn(t, s); {
		case named && f != nil:
			t.Errorf("a false alarm:\n%s", f)
		case !named && (f == nil || f.Violation.Oracle != OracleDuplicates):
			t.Errorf("got %v, want that a config map is created twice", f)
		}
	}
}
