// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// renamer keeps a ConfigMap with a suffix, and deletes those with other ones.
type renamer struct {
	client.Client

	suffix string
	others []string
}

func (c *renamer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, req.NamespacedName, secret); err != nil || secret.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + c.suffix},
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, c, configMap, func() error {
		configMap.Data = map[string]string{"value": string(secret.Data["value"])}
		return controllerutil.SetControllerReference(secret, configMap, scheme.Scheme)
	}); err != nil {
		return reconcile.Result{}, err
	}
	for _, suffix := range c.others {
		old := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.Name + suffix}, old)
		if err == nil && old.DeletionTimestamp == nil {
			err = c.Delete(ctx, old)
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

func renamerScenario(suffix string, others ...string) Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler { return &renamer{e.Client, suffix, others} }
	return s
}

func mustCheckUpgrade(t *testing.T, old, current Scenario) *UpgradeReport {
	t.Helper()
	report, err := CheckUpgrade(t, old, current, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestUpgrade_correct finds nothing if each version deletes the object of the other one.
func TestUpgrade_correct(t *testing.T) {
	report := mustCheckUpgrade(t, renamerScenario("-a", "-b"), renamerScenario("-b", "-a"))
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate, report.Certificate.Elapsed)
}

// TestUpgrade_leftOver finds the object of the old version that the new one does not know.
func TestUpgrade_leftOver(t *testing.T) {
	f := mustCheckUpgrade(t, renamerScenario("-a"), renamerScenario("-b")).Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if f.Violation.Oracle != OracleEndState || f.Violation.Cause != CauseUnexpected {
		t.Errorf("found by %s", f.Violation)
	}
	want := "ConfigMap default/a-a should not exist: the old version has created it, and the new version does not delete it"
	if f.Violation.Message != want {
		t.Errorf("message %q", f.Violation.Message)
	}
	if !strings.Contains(f.Timeline(), "process 2 starts: new version") {
		t.Error("the timeline does not have the start of the new version")
	}
}

// TestUpgrade_rollback finds that the old version does not delete the object of the new one.
func TestUpgrade_rollback(t *testing.T) {
	old, current := renamerScenario("-a"), renamerScenario("-b", "-a")
	f := mustCheckUpgrade(t, old, current).Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if !strings.HasPrefix(f.Replay, "rollback:v1:") || !strings.Contains(f.Timeline(), "process 3 starts: old version") {
		t.Errorf("%s\n%s", f.Replay, f)
	}
	current.NoRollback = "the old version does not know the new name"
	report := mustCheckUpgrade(t, old, current)
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate)
}
