// SPDX-License-Identifier: Apache-2.0

package trustmanager_test

import (
	"errors"
	"testing"

	trustv1 "github.com/cert-manager/trust-manager/pkg/apis/trust/v1alpha1"
	trustv2 "github.com/cert-manager/trust-manager/pkg/apis/trustmanager/v1alpha2"
	"github.com/cert-manager/trust-manager/pkg/bundle/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

const module = "github.com/cert-manager/trust-manager"

func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(trustv1.AddToScheme(s), trustv2.AddToScheme(s)))
	return s
}

// The Bundle of the old API is copied to a ClusterBundle of the new one.
func TestBundleToClusterBundle(t *testing.T) {
	source := trustv1.BundleSource{InLine: "certificate"}
	operators.Check(t, operators.Scenario{Module: module, Controller: "Bundle migration", Converge: converge.Scenario{
		Scheme: kinds(), For: &trustv1.Bundle{}, CRDs: operators.CRDsOrDie(module, "deploy/crds"),
		Setup: func(mgr manager.Manager) error {
			return (&controller.BundleReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
		},
		Steps: converge.Lifecycle(
			&trustv1.Bundle{
				ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: trustv1.BundleSpec{Sources: []trustv1.BundleSource{source}},
			},
			func(b *trustv1.Bundle) { b.Spec.Target.ConfigMap = &trustv1.TargetTemplate{Key: "ca.crt"} },
		),
	}})
}
