// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// gaugeListV1 is the list of the controller of the old version.
type gaugeListV1 struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gaugeV1 `json:"items"`
}

func (l *gaugeListV1) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*gaugeV1))
	}
	return &copied
}

// oldGaugeReconciler is the controller of v1 of gauges.
type oldGaugeReconciler struct{ client.Client }

func (r *oldGaugeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	gauge := &gaugeV1{}
	if err := r.Get(ctx, req.NamespacedName, gauge); err != nil || gauge.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r, configMap, func() error {
		configMap.Data = map[string]string{"size": strconv.Itoa(gauge.Spec.Size) + "cm"}
		return controllerutil.SetControllerReference(gauge, configMap, r.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	if gauge.Status.Phase == "Ready" {
		return reconcile.Result{}, nil
	}
	gauge.Status.Phase = "Ready"
	return reconcile.Result{}, r.Status().Update(ctx, gauge)
}

// gaugeUpgrade has an old version with a controller of v1, in which gauges are stored, and a new one with a controller
// of v2, in which they are stored then. If prepared is set, the old version serves v2, too, and converts it.
func gaugeUpgrade(t *testing.T, prepared bool, converter conversion.Converter) (old, current Scenario) {
	t.Helper()
	current = gaugeScenario(t, "v2", converter)
	current.Scheme.AddKnownTypeWithName(
		schema.GroupVersion{Group: gaugeGroup.Group, Version: "v1"}.WithKind("GaugeList"), &gaugeListV1{},
	)
	current.Desired = nil
	current.Steps = append(Steps(current.Steps[:4]...), current.Steps[len(current.Steps)-2:]...) // steps of users of v1
	old = gaugeScenario(t, "v1", converter)
	old.For, old.Steps, old.Desired = &gaugeV1{}, nil, nil
	old.Setup = func(mgr ctrl.Manager) error {
		if prepared {
			if err := ctrl.NewWebhookManagedBy(mgr, &gaugeV2{}).WithConverter(
				func(*runtime.Scheme) (conversion.Converter, error) { return converter, nil },
			).Complete(); err != nil {
				return err
			}
		}
		return ctrl.NewControllerManagedBy(mgr).For(&gaugeV1{}).Owns(&corev1.ConfigMap{}).Complete(
			&oldGaugeReconciler{mgr.GetClient()},
		)
	}
	if !prepared {
		crd := old.CRDs[0].(*apiextensionsv1.CustomResourceDefinition)
		crd.Spec.Versions, crd.Spec.Conversion = crd.Spec.Versions[:1], nil
	}
	return old, current
}

// mustCheckQuickly tries fewer faults after an upgrade: conversions make runs slow.
func mustCheckQuickly(t *testing.T, old, current Scenario) *UpgradeReport {
	t.Helper()
	report, err := CheckUpgrade(t, old, current, Options{Seed: 1, Recoveries: 100, Pairs: 50})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestUpgrade_storageVersion replaces a definition with one version by another one, which stores v2. A rollback cannot
// replace it again.
func TestUpgrade_storageVersion(t *testing.T) {
	old, current := gaugeUpgrade(t, false, gaugeConverter{})
	f := mustCheckQuickly(t, old, current).Failure
	const want = "status.storedVersions"
	if f == nil || directionOf(f.Replay) != rollbackName || !strings.Contains(f.Violation.Message, want) {
		t.Errorf("found %v, want that the definition cannot be replaced", f)
	}
	current.NoRollback = "the old version does not have v2, in which gauges are stored"
	if report := mustCheckQuickly(t, old, current); report.Failure != nil {
		t.Error(report.Failure)
	}
}

// TestUpgrade_storageVersionAndBack replaces a definition that has both versions, and stores gauges as v2 and then as
// v1 again.
func TestUpgrade_storageVersionAndBack(t *testing.T) {
	old, current := gaugeUpgrade(t, true, gaugeConverter{})
	current.Masks = []Mask{{Object: &gaugeV2{}, Field: "status.shown"}} // the old version keeps it
	report := mustCheckQuickly(t, old, current)
	if report.Failure != nil {
		t.Error(report.Failure)
	}
	if report.Certificate.Rollback == nil || report.Certificate.Rollback.Singles == 0 {
		t.Error("no rollback was tried")
	}
}

// TestUpgrade_conversionWithoutDefault finds a conversion of stored objects that lacks a default.
func TestUpgrade_conversionWithoutDefault(t *testing.T) {
	old, current := gaugeUpgrade(t, false, gaugeConverter{noUnit: true})
	f := mustCheckQuickly(t, old, current).Failure
	if f == nil || !strings.Contains(f.String(), `spec.unit is missing, want "cm"`) {
		t.Errorf("found %v, want the unit", f)
	}
}
