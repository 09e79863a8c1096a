// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
	"sigs.k8s.io/yaml"
)

// gaugeReconciler shows the size of a gauge in a config map, and in its status.
type gaugeReconciler struct{ client.Client }

func (r *gaugeReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	gauge := &gaugeV2{}
	if err := r.Get(ctx, req.NamespacedName, gauge); err != nil || gauge.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	shown := gauge.Spec.Size + gauge.Spec.Unit
	if _, err := controllerutil.CreateOrUpdate(ctx, r, configMap, func() error {
		configMap.Data = map[string]string{"size": shown}
		return controllerutil.SetControllerReference(gauge, configMap, r.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	if gauge.Status == (gaugeStatusV2{"Ready", shown}) {
		return reconcile.Result{}, nil
	}
	gauge.Status = gaugeStatusV2{"Ready", shown}
	return reconcile.Result{}, r.Status().Update(ctx, gauge)
}

// gaugeHook refuses gauges of a size. It is registered for v2 only.
type gaugeHook struct{}

func (gaugeHook) ValidateCreate(context.Context, *gaugeV2) (admission.Warnings, error) {
	return nil, nil
}

func (gaugeHook) ValidateUpdate(_ context.Context, _, g *gaugeV2) (admission.Warnings, error) {
	if g.Spec.Size == "13" {
		return nil, errors.New("13 is not a size")
	}
	return nil, nil
}

func (gaugeHook) ValidateDelete(context.Context, *gaugeV2) (admission.Warnings, error) {
	return nil, nil
}

// gaugeScenario has a controller of v2 of gauges, which are stored as a version, and users of v1.
func gaugeScenario(t *testing.T, storage string, converter conversion.Converter) Scenario {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	v1 := schema.GroupVersion{Group: gaugeGroup.Group, Version: "v1"}
	scheme.AddKnownTypeWithName(v1.WithKind("Gauge"), &gaugeV1{})
	scheme.AddKnownTypeWithName(gaugeGroup.WithKind("Gauge"), &gaugeV2{})
	scheme.AddKnownTypeWithName(gaugeGroup.WithKind("GaugeList"), &gaugeListV2{})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(gaugeCRD), crd); err != nil {
		t.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == storage
	}
	gauge := &gaugeV1{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: gaugeSpecV1{Size: 1}}
	size := func(size int) Step {
		return Do("set the size "+strconv.Itoa(size), func(ctx context.Context, c client.Client) error {
			stored := &gaugeV1{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(gauge), stored); err != nil {
				return err
			}
			stored.Spec.Size = size
			return c.Update(ctx, stored)
		})
	}
	return Scenario{
		Scheme: scheme, For: &gaugeV2{}, CRDs: []client.Object{crd},
		Setup: func(mgr ctrl.Manager) error {
			if err := ctrl.NewWebhookManagedBy(mgr, &gaugeV2{}).WithValidator(gaugeHook{}).WithConverter(
				func(*runtime.Scheme) (conversion.Converter, error) { return converter, nil },
			).Complete(); err != nil {
				return err
			}
			return ctrl.NewControllerManagedBy(mgr).For(&gaugeV2{}).Owns(&corev1.ConfigMap{}).Complete(
				&gaugeReconciler{mgr.GetClient()},
			)
		},
		Steps: Steps(
			Apply(gauge), Settle(), size(2), Settle(),
			Do("set a unit in v2", func(ctx context.Context, c client.Client) error {
				stored := &gaugeV2{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(gauge), stored); err != nil {
					return err
				}
				stored.Spec.Unit = "mm"
				return c.Update(ctx, stored)
			}), Settle(),
			size(3), Settle(), Delete(gauge), Settle(),
		),
		Desired: func(state State) error {
			stored, configMap := &gaugeV1{ObjectMeta: gauge.ObjectMeta}, &corev1.ConfigMap{ObjectMeta: gauge.ObjectMeta}
			if !state.Get(stored) || stored.Spec.Size < 3 {
				return nil
			}
			if !state.Get(configMap) || configMap.Data["size"] != "3mm" {
				return errors.New("the unit was lost")
			}
			return nil
		},
	}
}

// checkQuickly tries single faults and a few others: conversions make runs slow.
func checkQuickly(t *testing.T, s Scenario) {
	t.Helper()
	converges(t, s, Options{Seed: 1, Recoveries: 50, Pairs: 50})
}

// TestVersions runs a controller of one version for users of another one, in both storage versions.
func TestVersions(t *testing.T) {
	for _, storage := range []string{"v1", "v2"} {
		t.Run("stored as "+storage, func(t *testing.T) {
			checkQuickly(t, gaugeScenario(t, storage, gaugeConverter{}))
		})
		t.Run("stored as "+storage+", with a conversion that loses fields", func(t *testing.T) {
			s := gaugeScenario(t, storage, gaugeConverter{loses: true})
			if storage == "v1" {
				s.Desired = nil // the loss is visible without it: the controller writes the status again and again
			}
			if f := foundIn(t, s); f == nil {
				t.Error("found nothing")
			}
		})
	}
}

// failingConverter refuses to convert from v2.
type failingConverter struct{ gaugeConverter }

func (c failingConverter) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	if g, ok := src.(*gaugeV2); ok && g.Spec.Size == "3" {
		return errors.New("not 3")
	}
	return c.gaugeConverter.ConvertObject(ctx, src, dst)
}

// TestFailedConversion finds a conversion that fails for stored objects.
func TestFailedConversion(t *testing.T) {
	s := gaugeScenario(t, "v2", failingConverter{})
	s.Desired = nil
	if f := foundIn(t, s); f == nil || !strings.Contains(f.String(), "not 3") {
		t.Errorf("got %v, want a failure with the error", f)
	}
}

// TestWebhookOfAnotherVersion calls a webhook of v2 for an update of v1.
func TestWebhookOfAnotherVersion(t *testing.T) {
	s := gaugeScenario(t, "v1", gaugeConverter{})
	var refused error
	s.Steps = append(Steps(s.Steps[:2]...), Do("set the size 13", func(ctx context.Context, c client.Client) error {
		refused = c.Patch(
			ctx, &gaugeV1{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":13}}`)),
		)
		return nil
	}), Settle())
	checkQuickly(t, s)
	if refused == nil || !strings.Contains(refused.Error(), "13 is not a size") {
		t.Errorf("got %v", refused)
	}
}

// TestConversionIsRequired reports a Setup that registers no conversion.
func TestConversionIsRequired(t *testing.T) {
	s := gaugeScenario(t, "v1", gaugeConverter{})
	s.Setup = func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&gaugeV2{}).Complete(&gaugeReconciler{mgr.GetClient()})
	}
	if f := foundIn(t, s); f == nil || !strings.Contains(f.String(), "registers no webhook at /convert") {
		t.Errorf("got %v", f)
	}
}
